// What waits and what is judged: filters, counts, the list, and files of what people found.

import { call } from "/pages/access.js";
import { ago, button, byId, el, many, short } from "/pages/words.js";

const CHOICES = ["reason", "policy", "age", "order", "blind"];
const KEPT = "demur-review-choices";
let state = "open";
let listed = [];

/** What a person chose to see, as the service takes it. */
export function wanted() {
  const chosen = { order: byId("order").value };
  if (byId("reason").value) chosen.reason = byId("reason").value;
  if (byId("policy").value) chosen.policy = Number(byId("policy").value);
  const age = Number(byId("age").value);
  if (age < 0) chosen.since = Date.now() + age;
  if (age > 0) chosen.until = Date.now() - age;
  return chosen;
}

/** Bring back what was chosen last, and hear of changes. */
export function beginChoices(changed) {
  try {
    for (const [name, value] of Object.entries(JSON.parse(localStorage.getItem(KEPT) ?? "{}"))) {
      if (CHOICES.includes(name) && name !== "policy") byId(name).value = value;
    }
  } catch {
    // nothing was kept
  }
  byId("wanted").addEventListener("change", () => {
    try {
      localStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(CHOICES.map((name) => [name, byId(name).value]))));
    } catch {
      // chosen for this page alone
    }
    changed();
  });
}

/** Read how much waits; and the list, where it is open. */
export async function readQueue(actions, after = null) {
  const query = new URLSearchParams({ ...wanted(), state, limit: byId("queue").open ? 20 : 1 });
  if (after) query.set("after", after);
  const told = await call(`/review/api/queue?${query}`);
  if (state === "open") drawCounts(told.counts);
  drawPolicies(told.policies);
  drawAgreement(told.agreement);
  listed = after ? [...listed, ...told.items] : told.items;
  byId("items").replaceChildren(...listed.map((item) => drawRow(item, actions)));
  byId("more").hidden = !told.more;
  byId("more").onclick = () => readQueue(actions, listed.at(-1).request).catch(actions.trouble);
  return told;
}

/** Show what waits, or what is judged. */
export function seeState(chosen) {
  state = chosen;
  byId("see-open").setAttribute("aria-pressed", String(chosen === "open"));
  byId("see-done").setAttribute("aria-pressed", String(chosen === "done"));
}

function drawCounts({ abstained, audit, most }) {
  const told = (count, word) => (count >= most ? `${most.toLocaleString("en")} or more ${word}s` : many(count, word));
  byId("counts").textContent = `${told(abstained, "abstention")} and ${told(audit, "audit")} wait`;
}

function drawPolicies(policies) {
  const chosen = byId("policy").value;
  const options = policies.map(({ policy, name }) => {
    const made = el("option", "", name);
    made.value = policy;
    return made;
  });
  byId("policy").replaceChildren(byId("policy").options[0], ...options);
  byId("policy").value = chosen;
  byId("files-note").textContent =
    "Audits are a random part of the traffic: calibrate on them and on nothing else. Judged items are not.";
  const until = Date.now(); // the same for pools and labels, or they would not belong together
  byId("exports").replaceChildren(
    ...policies.map(({ policy, name }) =>
      el(
        "li",
        "",
        el("span", "data", `${name}: `),
        file("audits as pools", { what: "audits", form: "pools", policy, until }),
        file("their labels", { what: "audits", form: "labels", policy, until }),
        file("judged as pools", { what: "judged", form: "pools", policy }),
      ),
    ),
    el("li", "", file("all judged, as CSV", { what: "judged", form: "csv" })),
  );
}

function file(words, query) {
  const made = el("a", "", words);
  made.href = `/review/api/labelled?${new URLSearchParams(query)}`;
  made.download = "";
  return made;
}

function drawAgreement({ judged_twice: twice, agreed }) {
  byId("agreement").textContent = twice
    ? `Of ${many(twice, "item")} that two people judged, they agreed on ${agreed} (${Math.round((100 * agreed) / twice)}\u00a0%).`
    : "";
}

function drawRow(item, actions) {
  const why = item.reason === "audit" ? "Audit" : "Abstention";
  const words = [why, ago(item.at)];
  if (item.state === "open" && item.held)
    words.push(actions.isShown(item.request) ? "shown above" : "somebody looks at it");
  if (item.state === "open" && item.judged_once) words.push("waits for a second opinion");
  for (const said of item.said) {
    const who = said.by_caller ? "a caller" : said.mine ? "you" : "another";
    words.push(`${who}: ${said.verdict ?? "the true answer"}`);
  }
  if (item.agree !== null) words.push(item.agree ? "agreed" : "not agreed");
  const row = el(
    "li",
    "",
    el("span", "data", short(item.question || item.request, 120)),
    el("span", "small", words.join(" · ")),
  );
  if (item.state === "open" && !item.held) row.append(button("Judge", "", () => actions.open(item.request)));
  if (item.state === "done" && item.mine) row.append(button("Take back", "", () => actions.takeBack(item.request)));
  return row;
}
