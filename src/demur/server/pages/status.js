import { call, may } from "/pages/access.js";

const EVERY = 10_000;
const DURING_ALARM = {
  warn: "every reply says so, and questions are answered as before",
  abstain: "no question is answered",
  strictest: "questions are answered at the strictest alpha alone",
};
const place = (name) => document.getElementById(name);
let clears = false;

async function show() {
  const facts = await call("/status/api");
  place("told").textContent =
    `${time(facts.now)} · ${percent(facts.audit_share)} of requests are picked at random for people to check (audits) · ` +
    `during an alarm ${DURING_ALARM[facts.on_alarm]}`;
  if (document.activeElement?.closest?.(".clear")) {
    return; // somebody is writing there
  }
  place("policies").replaceChildren(...facts.policies.map(policy));
  place("trouble").textContent = "";
}

function policy(facts) {
  const parts = [
    made("h2", facts.active ? facts.policy : `${facts.policy} (no longer active)`, "data"),
    verdict(facts),
    made("div", facts.periods.map(period), "cards"),
    made("div", facts.points.map(point), "cards"),
    made("div", [watched(facts), versions(facts), events(facts)], "cards"),
  ];
  return made("section", parts, "policy");
}

function verdict(facts) {
  const parts = [made("p", facts.diagnosis, "data")];
  if (facts.alarms.length) {
    parts.push(
      made(
        "ul",
        facts.alarms.map((alarm) => made("li", `${time(alarm.since)}: ${alarm.words}`, "data")),
      ),
    );
    if (clears) {
      parts.push(clearing(facts.policy));
    }
  }
  return made("div", parts, facts.in_doubt ? "verdict doubt" : "verdict");
}

function clearing(name) {
  const note = made("input");
  note.maxLength = 2000;
  note.placeholder = "Why it is no longer in doubt";
  note.setAttribute("aria-label", `Why ${name} is no longer in doubt`);
  const form = made("form", [note, made("button", "Clear")], "clear");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await call("/status/api/clear", { policy: name, note: note.value.trim() || null });
      note.blur();
      form.remove();
      await show();
    } catch (error) {
      tell(error);
    }
  });
  return form;
}

function period(facts) {
  const share = (count) => `${count} (${facts.requests ? percent(count / facts.requests) : "–"})`;
  const rows = {
    requests: String(facts.requests),
    answered: share(facts.answered),
    "not answered (abstained)": share(facts.abstained),
    "not answered, because something failed": share(facts.failed),
    "paths drawn from the model": String(facts.drawn),
    "paths saved by stopping early": String(facts.saved),
  };
  return card(`Last ${facts.name}`, [list(rows)]);
}

function point(facts) {
  const interval = `${Math.round(100 * facts.level)}% interval`;
  const promised = facts.among_answers ? "wrong answers among all answers" : "wrong answers among all requests";
  const rows = {
    "audits so far": String(facts.audited),
    "audits waiting for a label": String(facts.awaited),
    "right answers among all answers, as calibration predicts": `${facts.predicted_at_least ? "≥ " : ""}${percent(facts.predicted_accuracy)}`,
    "right answers among all answers, in audits": percent(facts.accuracy),
    [`right answers, ${interval}`]: between(facts.accuracy_limits),
    [`${promised}, as promised`]: `≤ ${percent(facts.alpha)}`,
    "wrong answers among all requests, in audits": percent(facts.error),
    [`wrong answers, ${interval}`]: between(facts.error_limits),
    ...moved(facts.online),
  };
  const since = facts.began ? [made("p", `Counted since ${time(facts.began)}.`, "small")] : [];
  const words = [...facts.sentences, facts.monitor, facts.online?.sentence].filter(Boolean);
  const title = `What audits say of the promise at alpha ${facts.alpha} (${facts.guarantee})`;
  return card(title, [list(rows), ...since, ...words.map((text) => made("p", text, "small data"))]);
}

/** Where audits have brought the threshold; nothing where they do not move it. */
function moved(online) {
  if (!online) {
    return {};
  }
  return {
    "confidence needed for an answer, as calibrated": online.calibrated.toFixed(3),
    "confidence needed for an answer, now": `${online.threshold.toFixed(3)}${online.raised ? " (raised by audits)" : ""}`,
    "audits whose label may still move it": String(online.awaited),
    "wrong answers in audits, at most": percent(online.bound),
  };
}

function watched(facts) {
  const { placed, waiting, again } = facts.audits;
  const words = [
    `The monitors have counted ${placed} audits, and count ${waiting} more soon. ` +
      `They leave out ${again} whose question was audited before.`,
    facts.drift,
    facts.canaries
      ? `${facts.canaries.asked} old questions were asked again to watch the model (canaries), ` +
        `${facts.canaries.left} are left. ${facts.compared}`
      : "No old questions are asked again to watch the model (canaries) under this version.",
    ...facts.notes,
    ...Object.entries(facts.reported).map(([what, names]) => `Reported ${what.replace("_", " ")}: ${names.join(", ")}`),
  ];
  return card(
    "Monitors",
    words.filter(Boolean).map((text) => made("p", text, "small data")),
  );
}

function versions(facts) {
  const rows = facts.versions.map((one) => [
    `version ${one.version}`,
    `${one.state}, ${new Date(one.at).toLocaleDateString()}`,
  ]);
  return card("Versions", [list(Object.fromEntries(rows))]);
}

function events(facts) {
  const lines = facts.events.map((event) => made("li", `${time(event.at)}: ${event.words}`, "small data"));
  return card("Events", lines.length ? [made("ul", lines, "events")] : [made("p", "None so far.", "small")]);
}

function card(title, parts) {
  return made("section", [made("h3", title, "data"), ...parts], "card");
}

function list(rows) {
  return made(
    "dl",
    Object.entries(rows).flatMap(([name, value]) => [made("dt", name, "small"), made("dd", value)]),
  );
}

/** An element with a text or with elements in it; whatever is written there is text. */
function made(kind, content = [], classes = "") {
  const element = document.createElement(kind);
  if (typeof content === "string") {
    element.textContent = content;
  } else {
    element.append(...content);
  }
  element.className = classes;
  return element;
}

function between(limits) {
  return limits === null ? "–" : `${percent(limits[0])} to ${percent(limits[1])}`;
}

function percent(rate) {
  return rate === null ? "–" : `${(100 * rate).toFixed(1)}%`;
}

function time(text) {
  return new Date(text).toLocaleString();
}

function tell(error) {
  place("trouble").textContent = error.message;
}

async function keepShowing() {
  try {
    clears = await may("admin");
    await show();
  } catch (error) {
    tell(error);
  }
  setTimeout(keepShowing, EVERY);
}

keepShowing();
