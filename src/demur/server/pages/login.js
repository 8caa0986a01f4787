import { logIn, logOut, may, whoAmI } from "/pages/access.js";

const PAGES = { review: "Review", status: "Status" };
const wanted = new URLSearchParams(location.search).get("then");
const place = (name) => document.getElementById(name);

async function show() {
  const who = await whoAmI();
  const out = who.keys_asked_for && !who.logged_in;
  place("enter").hidden = !out;
  place("inside").hidden = out;
  if (out) {
    place("key").focus();
    return;
  }
  place("who").textContent = who.logged_in ? `Logged in as ${who.name}` : "No keys are asked for";
  place("may").textContent = who.logged_in
    ? `This key may: ${who.roles.join(", ")}. The login holds until ${new Date(who.until).toLocaleString()}.`
    : "Only this machine reaches this service.";
  place("leave").hidden = !who.logged_in;
  const links = (await may("review")) ? Object.entries(PAGES).map(([name, title]) => link(name, title)) : [];
  place("links").replaceChildren(...links);
  if (!links.length) {
    place("trouble").textContent = "The pages need a key with the role review.";
  }
}

function link(name, title) {
  const made = document.createElement("a");
  made.href = `/${name}`;
  made.textContent = title;
  return made;
}

place("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  place("trouble").textContent = "";
  try {
    await logIn(place("key").value.trim());
    place("key").value = "";
    if (Object.hasOwn(PAGES, wanted ?? "") && (await may("review"))) {
      location.assign(`/${wanted}`);
    } else {
      await show();
    }
  } catch (error) {
    place("trouble").textContent = error.message;
    place("key").select();
  }
});

place("leave").addEventListener("click", () => logOut().catch((error) => tell(error)));

function tell(error) {
  place("trouble").textContent = error.message;
}

show().catch(tell);
