// Asking the service on behalf of whoever is logged in. Pages import this:
//
//   import { call, whoAmI } from "/pages/access.js";
//   const items = await call("/v1/reviews");                     // GET
//   await call("/v1/reviews/settle", { request, verdict });      // POST of JSON, with the login's CSRF token

let known = null;

/** Who is logged in, and whether anybody must be: { keys_asked_for, logged_in, name, roles, csrf, until }. */
export async function whoAmI() {
  known ??= await answered(await fetch("/login/state"));
  return known;
}

/** Whether whoever is logged in has a role; where no keys are asked for, everybody has. */
export async function may(role) {
  const who = await whoAmI();
  return !who.keys_asked_for || (who.logged_in && (who.roles.includes(role) || who.roles.includes("admin")));
}

/** What the service answers, as JSON. With a body it is a POST. Throws an Error with what the service said. */
export async function call(path, body, method = body === undefined ? "GET" : "POST") {
  const headers = {};
  if (method !== "GET") {
    headers["x-demur-csrf"] = (await whoAmI()).csrf ?? "";
    headers["content-type"] = "application/json";
  }
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (response.status === 401 && path !== "/login") {
    const page = location.pathname.slice(1);
    location.assign(`/login?then=${encodeURIComponent(page)}`);
  }
  return answered(response);
}

/** Log in with a key. */
export async function logIn(key) {
  known = await call("/login", { key });
  return known;
}

/** Log out, and go to the login page. */
export async function logOut() {
  await call("/logout", {});
  known = null;
  location.assign("/login");
}

async function answered(response) {
  let document = null;
  try {
    document = await response.json();
  } catch {
    // no JSON: the status alone says what happened
  }
  if (!response.ok) {
    const error = new Error(document?.error?.message ?? `The service answered ${response.status}.`);
    error.status = response.status;
    error.code = document?.error?.code ?? null;
    throw error;
  }
  return document;
}
