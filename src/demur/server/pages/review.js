// The review page: an item for one person, a verdict by one key, and the next. Nothing that was said is lost when the
// service cannot be reached: see review_outbox.js.

import { call, logOut, whoAmI } from "/pages/access.js";
import { drawItem, stepPath } from "/pages/review_item.js";
import * as outbox from "/pages/review_outbox.js";
import { beginChoices, readQueue, seeState, wanted } from "/pages/review_queue.js";
import { button, byId, el, percent, short } from "/pages/words.js";

const HERE = "demur-review-item";
const MOST_SKIPPED = 500;
const TOO_SOON = 250; // milliseconds in which a key that was meant for the last item does nothing
let item = null;
let shownAt = 0;
let busy = false;
let said = []; // verdicts of this page, the last one last, with their items
let skipped = [];
let csrf = "";
let pause = 1_000;
let again = null;

const say = (words) => {
  byId("say").textContent = words;
};
const remember = (request) => {
  try {
    request ? sessionStorage.setItem(HERE, request) : sessionStorage.removeItem(HERE);
  } catch {
    // the browser keeps nothing
  }
};
const remembered = () => {
  try {
    return sessionStorage.getItem(HERE);
  } catch {
    return null;
  }
};

/** Do one thing at a time; where the service cannot be reached, say so and go on by itself when it can. */
async function doing(work) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    await work();
    reached();
  } catch (error) {
    trouble(error);
  } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
    drawState();
  }
}

function trouble(error) {
  const kept = outbox.waiting().length;
  const safe = kept ? ` ${kept === 1 ? "One verdict is" : `${kept} verdicts are`} kept here and will be sent.` : "";
  const passing = outbox.passing(error);
  tell(passing ? `The service cannot be reached.${safe} Trying again …` : `${error.message}${safe}`);
  if (passing && again === null) {
    again = setTimeout(goOn, pause);
    pause = Math.min(2 * pause, 15_000);
  }
}

function tell(words) {
  byId("network").hidden = !words;
  byId("network").textContent = words;
}

function reached() {
  if (again !== null) clearTimeout(again);
  again = null;
  pause = 1_000;
  tell("");
}

/** After an outage: send what waits, and get an item where there is none. */
function goOn() {
  if (again !== null) clearTimeout(again);
  again = null;
  if (busy) return;
  doing(async () => {
    await send();
    if (item === null) await next();
  });
}

const send = () => outbox.flush(noted);

function noted(entry, told) {
  const words = { right: "right", wrong: "wrong", unsure: "unsure" }[told.verdict];
  const answer = told.answer ? `, the true answer ${short(told.answer, 40)}` : "";
  const vote = told.vote.winner === null ? "there was no vote" : `the vote said ${short(told.vote.winner, 40)}`;
  const share = told.vote.votes.find((one) => one.answer === told.vote.winner)?.share;
  const backed = share === undefined ? "" : ` with ${percent(share)}, ${told.vote.outcome}`;
  const opinion = told.waits_for_second ? "; a second person will look" : "";
  const agree = told.agree === null ? "" : told.agree ? "; the other person agrees" : "; the other person disagrees";
  byId("last").hidden = false;
  byId("last").replaceChildren(
    el("span", "data", `${short(entry.question, 60)} – you: ${words}${answer}; ${vote}${backed}${opinion}${agree}.`),
  );
  say(`Noted: ${words}.`);
}

/** The next item, or that one. */
async function next(request = null) {
  const body = { ...wanted(), skipping: skipped, blind: byId("blind").value };
  let told = request ? await call("/review/api/claim", { request, blind: body.blind }) : { item: null };
  if (told.item === null) told = await call("/review/api/claim", body);
  show(told.item);
  await readQueue(actions);
}

function show(given) {
  item = given;
  shownAt = performance.now();
  remember(item?.request ?? null);
  byId("true").value = "";
  if (item !== null) {
    drawItem(item, judge);
    byId("item").focus({ preventScroll: true });
    scrollTo({ top: 0 });
    say(
      `${item.reason === "audit" ? "Audit" : "Abstention"}: ${short(item.question ?? item.messages.at(-1)?.text ?? "", 200)}`,
    );
  } else {
    say("Nothing waits for you.");
  }
  drawState();
}

function drawState() {
  byId("shown").hidden = item === null;
  byId("bar").hidden = item === null && said.length === 0;
  byId("nothing").hidden = item !== null;
  if (item === null) drawNothing();
  const judged = item !== null && item.answers.length > 0;
  byId("right").disabled = !judged || item.vote === null;
  byId("wrong").disabled = !judged;
  byId("wrong-word").textContent = item !== null && item.vote === null ? "None is right" : "Wrong";
  byId("reveal").hidden = item === null || item.vote !== null;
  for (const name of ["unsure", "skip", "true"]) byId(name).disabled = item === null;
  byId("undo").disabled = said.length === 0;
  byId("refused").replaceChildren(...outbox.refused().map(drawRefused));
}

function drawNothing() {
  const nothing = byId("nothing");
  if (!byId("network").hidden) {
    nothing.replaceChildren("Waiting for the service.");
    return;
  }
  nothing.replaceChildren(
    "Nothing waits for you here. What others hold, and what you gave the first opinion on, is not yours to judge. ",
    button("Look again", "", () => doing(() => next())),
  );
  if (skipped.length) {
    nothing.append(
      " ",
      button(`Go through the ${skipped.length} skipped again`, "", () => {
        skipped = [];
        doing(() => next());
      }),
    );
  }
}

function drawRefused(entry) {
  const what = entry.verdict ?? `the true answer ${short(entry.answer ?? "", 60)}`;
  const words = `Not noted: your verdict (${what}) on ${short(entry.question, 60)}: ${entry.why}`;
  return el(
    "li",
    "notice",
    el("span", "data", words),
    button("Dismiss", "", () => {
      outbox.dismiss(entry);
      drawState();
    }),
  );
}

/** A verdict: it is kept before anything else happens. */
function judge(verdict) {
  if (item === null || busy || performance.now() - shownAt < TOO_SOON) return;
  const question = item.question ?? item.messages.at(-1)?.text ?? item.request;
  const entry = {
    request: item.request,
    token: item.token,
    ...verdict,
    question: short(question, 120),
    since: Date.now(),
  };
  outbox.keep(entry);
  said = [...said.slice(-49), { entry, item }];
  item = null;
  remember(null);
  doing(async () => {
    await send();
    await next();
  });
}

function judgeWrong() {
  const answer = byId("true").value.trim();
  judge(answer ? { verdict: "wrong", answer } : { verdict: "wrong" });
}

function skip() {
  if (item === null || busy) return;
  doing(async () => {
    const { request, token } = item;
    await call("/review/api/release", { request, token });
    skipped = [...skipped, request].slice(-MOST_SKIPPED);
    show(null);
    await next();
  });
}

function undo() {
  const last = said.at(-1);
  if (last === undefined || busy) return;
  doing(async () => {
    if (outbox.has(last.entry)) {
      outbox.takeBack(last.entry); // the service never heard of it, and the lease still runs
      said = said.slice(0, -1);
      await giveBack();
      show(last.item);
      return;
    }
    await call("/review/api/undo", { request: last.entry.request });
    said = said.slice(0, -1);
    byId("last").hidden = true;
    await giveBack();
    await next(last.entry.request);
    say("Taken back.");
  });
}

/** Give back the item that is shown, for another comes in its place. */
async function giveBack() {
  if (item === null) return;
  const { request, token } = item;
  show(null);
  await call("/review/api/release", { request, token });
}

function reveal() {
  if (item === null || item.vote !== null) return;
  doing(async () => {
    const { request, token } = item;
    const told = await call("/review/api/show", { request, token });
    item = { ...item, ...told.item };
    drawItem(item, judge);
    say("The vote is shown.");
  });
}

const actions = {
  trouble,
  isShown: (request) => item?.request === request,
  open: (request) =>
    doing(async () => {
      await giveBack();
      await next(request);
    }),
  takeBack: (request) =>
    doing(async () => {
      await call("/review/api/undo", { request });
      said = said.filter(({ entry }) => entry.request !== request);
      await giveBack();
      await next(request);
    }),
};

async function renew() {
  if (item === null || busy) return;
  const { request, token } = item;
  try {
    await call("/review/api/renew", { request, token });
    if (again === null) reached();
  } catch (error) {
    if (error.code !== "lease_lost") trouble(error);
    else if (item?.token === token) {
      show(null);
      await doing(() => next());
      tell("You had that item for too long without the service hearing of it, and somebody else took it.");
    }
  }
}

const KEYS = {
  r: () => byId("right").disabled || judge({ verdict: "right" }),
  w: () => byId("wrong").disabled || judgeWrong(),
  u: () => judge({ verdict: "unsure" }),
  s: skip,
  z: undo,
  b: reveal,
  t: () => byId("true").focus(),
  j: () => stepPath(1),
  k: () => stepPath(-1),
  ArrowRight: () => stepPath(1),
  ArrowLeft: () => stepPath(-1),
  "?": () => byId("help").showModal(),
};

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat || byId("help").open) return;
  const digit = item !== null && /^[1-9]$/.test(event.key) ? item.answers[Number(event.key) - 1] : undefined;
  const act = digit
    ? () => judge({ answer: digit.answer })
    : KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

const CLICKS = { right: KEYS.r, wrong: KEYS.w, unsure: KEYS.u, skip, undo, reveal, "ask-help": KEYS["?"] };
for (const [name, act] of Object.entries(CLICKS)) byId(name).addEventListener("click", () => act());
byId("true-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const answer = byId("true").value.trim();
  if (answer) judge({ answer });
});
for (const state of ["open", "done"]) {
  byId(`see-${state}`).addEventListener("click", () => {
    seeState(state);
    readQueue(actions).catch(trouble);
  });
}
byId("queue").addEventListener("toggle", () => readQueue(actions).catch(trouble));
byId("leave").addEventListener("click", () => logOut().catch(trouble));
addEventListener("online", goOn);
addEventListener("offline", () => trouble(new Error()));
addEventListener("pagehide", () => {
  if (item === null) return;
  const headers = { "content-type": "application/json", "x-demur-csrf": csrf };
  const body = JSON.stringify({ request: item.request, token: item.token });
  fetch("/review/api/release", { method: "POST", headers, body, keepalive: true }).catch(() => {});
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

beginChoices(() =>
  doing(async () => {
    await giveBack();
    await next();
  }),
);
doing(async () => {
  const who = await whoAmI();
  csrf = who.csrf ?? "";
  byId("who").textContent = who.logged_in ? who.name : "";
  byId("leave").hidden = !who.logged_in;
  await send();
  await next(remembered());
  setInterval(renew, (1000 * (item?.seconds ?? 600)) / 5);
});
