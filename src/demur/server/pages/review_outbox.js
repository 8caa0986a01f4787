// Verdicts on their way. Each is kept in the browser until the service has it, and the service keeps it once: a lease
// has one verdict, however often it is sent.

import { call } from "/pages/access.js";

const WAITING = "demur-verdict:";
const REFUSED = "demur-refused:";
const memory = new Map(); // where the browser keeps nothing

const nameOf = (entry) => `${entry.request}:${entry.token}`;

function put(name, entry) {
  try {
    localStorage.setItem(name, JSON.stringify(entry));
  } catch {
    memory.set(name, entry);
  }
}

function drop(name) {
  memory.delete(name);
  try {
    localStorage.removeItem(name);
  } catch {
    // it was in memory alone
  }
}

function all(kind) {
  const found = [...memory.entries()].filter(([name]) => name.startsWith(kind)).map(([, entry]) => entry);
  try {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(kind)) found.push(JSON.parse(localStorage.getItem(name)));
    }
  } catch {
    // what cannot be read was not written here
  }
  return found.sort((one, other) => one.since - other.since);
}

/** Whether an error says that the service could not be reached, or could not do it just now. */
export const passing = (error) =>
  error.status === undefined || error.status >= 500 || [408, 429].includes(error.status);

export const waiting = () => all(WAITING);
export const refused = () => all(REFUSED);
export const keep = (entry) => put(WAITING + nameOf(entry), entry);
export const has = (entry) => waiting().some((other) => nameOf(other) === nameOf(entry));
export const takeBack = (entry) => drop(WAITING + nameOf(entry));
export const dismiss = (entry) => drop(REFUSED + nameOf(entry));

/** Send all that waits, in order; `sent(entry, told)` hears of each. Throws where the service cannot be reached. */
export async function flush(sent) {
  const work = () => sendAll(sent);
  return navigator.locks ? navigator.locks.request("demur-verdicts", work) : work();
}

async function sendAll(sent) {
  for (const entry of waiting()) {
    try {
      const told = await send(entry);
      drop(WAITING + nameOf(entry));
      sent(entry, told);
    } catch (error) {
      if (passing(error) || [401, 403].includes(error.status)) throw error;
      put(REFUSED + nameOf(entry), { ...entry, why: error.message });
      drop(WAITING + nameOf(entry));
    }
  }
}

async function send(entry) {
  const { request, verdict, answer } = entry;
  try {
    return await call("/review/api/verdict", { request, token: entry.token, verdict, answer });
  } catch (error) {
    if (error.code !== "lease_lost") throw error;
    const { item } = await call("/review/api/claim", { request }); // nobody took it meanwhile: it is ours again
    if (item === null) throw error;
    return call("/review/api/verdict", { request, token: item.token, verdict, answer });
  }
}

addEventListener("beforeunload", (event) => {
  if (memory.size) event.preventDefault();
});
