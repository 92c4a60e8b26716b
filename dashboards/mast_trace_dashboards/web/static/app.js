// Small conveniences; every page works without them.
"use strict";

async function fetched(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
  return answer.status === 204 ? null : answer.text();
}

function again(more) {
  const address = new URL(location.href);
  address.hash = "";
  for (const [name, value] of Object.entries(more)) address.searchParams.set(name, value);
  return address;
}

// The list keeps up with what comes in, and marks new runs. While somebody works in it, a line says that they have come.
const list = document.querySelector("#list[data-refresh]");
const addresses = (part) => [...part.querySelectorAll(".runs .what > a")].map((link) => link.getAttribute("href"));
if (list) {
  const arrived = document.getElementById("arrived");
  setInterval(async () => {
    if (document.hidden) return;
    try {
      const fresh = await fetched(again({ part: "1" }));
      if (fresh === list.dataset.shown) return;
      const part = document.createElement("template");
      part.innerHTML = fresh;
      const before = addresses(list);
      const come = addresses(part.content).filter((address) => !before.includes(address));
      if (list.contains(document.activeElement) || list.querySelector("input:checked")) {
        arrived.hidden = !come.length;
        return;
      }
      list.replaceChildren(part.content);
      list.dataset.shown = fresh;
      arrived.hidden = true;
      for (const address of before.length ? come : []) list.querySelector(`.what > a[href="${CSS.escape(address)}"]`)?.closest("tr").classList.add("arrived");
      if (come.length) parts.forEach(showPart);
    } catch { /* the next look may succeed */ }
  }, 3000);
}

// Parts that take a while come after the page: the last days above the list, the measures of a team.
const parts = document.querySelectorAll("div[data-src]");
async function showPart(part) {
  try {
    part.innerHTML = await fetched(part.dataset.src);
  } catch { /* the page stands without it */ }
  part.hidden = !part.innerHTML.trim();
}
parts.forEach(showPart);

// So does a run that has no verdict yet: in place while nobody reads on, else a line says so.
const run = document.getElementById("run");
const news = document.getElementById("news");
const state = (part) => part.querySelector("[data-state]")?.dataset ?? {};
const unfinished = (part) => ["running", "waiting", "changed", "no end seen", "a model is reading", "provisional"].includes(state(part).state);
const SOON = 500;
let wait = SOON;
async function keepUp() {
  if (!document.hidden) {
    try {
      const fresh = document.createElement("template");
      const begun = Date.now();
      const part = await fetched(again({ part: "1", known: state(run).version }));
      fresh.innerHTML = part ?? "";
      if (part === null) {
        wait = SOON; // it costs next to nothing to learn that there is nothing new
      } else if (scrollY > 200 || run.contains(document.activeElement) || run.querySelector("details[open]")) {
        news.hidden = false;
        return;
      } else {
        run.replaceChildren(fresh.content);
        run.querySelectorAll(".verdict").forEach(offerCopies);
        watchMore();
        // A long run that goes on takes its time to read: it is asked for less often. After its end, the verdict is next.
        wait = state(run).state === "running" ? Math.max(SOON, 4 * (Date.now() - begun)) : SOON;
      }
    } catch { /* the next look may succeed */ }
  }
  if (unfinished(run)) setTimeout(keepUp, wait);
}
if (run && unfinished(run)) setTimeout(keepUp, wait);

// Whole texts and raw spans come when they are unfolded.
document.addEventListener("toggle", async (event) => {
  const details = event.target;
  if (!details.open || !details.dataset.src) return;
  const address = details.dataset.src;
  delete details.dataset.src;
  const place = details.querySelector("p");
  try {
    place.outerHTML = await fetched(address);
  } catch (error) {
    details.dataset.src = address;
    place.textContent = `Could not be loaded (${error.message}). Fold and unfold to try again.`;
  }
}, true);

// Commands can be copied where the browser allows it: on this machine, or over HTTPS.
function offerCopies(place) {
  for (const command of navigator.clipboard ? place.querySelectorAll("[data-copy]") : []) {
    delete command.dataset.copy;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    const said = document.createElement("span");
    said.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        said.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(command);
        said.textContent = "Selected: copy it with the keyboard";
      }
    });
    command.after(button, said);
  }
}
document.addEventListener("toggle", (event) => event.target.open && offerCopies(event.target), true);
document.querySelectorAll(".verdict").forEach(offerCopies);

// Further steps of a long run.
async function more(link) {
  const item = link.closest("li");
  if (item.hasAttribute("aria-busy")) return;
  item.setAttribute("aria-busy", "true");
  try {
    item.outerHTML = await fetched(link.href);
    watchMore();
  } catch (error) {
    link.textContent = `Could not be loaded (${error.message}). Try again.`;
    item.removeAttribute("aria-busy");
  }
}
// They come by themselves while somebody scrolls towards them.
const near = new IntersectionObserver((seen) => {
  for (const each of seen.filter((one) => one.isIntersecting)) {
    near.unobserve(each.target);
    more(each.target.querySelector("a"));
  }
}, { rootMargin: "1000px", scrollMargin: "1000px" });
function watchMore() {
  for (const link of document.querySelectorAll("a[data-more]")) near.observe(link.closest("li"));
}
watchMore();
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-more]");
  if (link) {
    event.preventDefault();
    more(link);
  }
});

// A link to a step that is not there yet fetches its page; what lies between is left for later.
const PAGE = 500;
async function fetchPageOf(number) {
  const link = [...document.querySelectorAll(".steps a[data-more]")]
    .find((each) => Number(each.dataset.from) <= number && number < Number(each.dataset.to));
  if (!link) return;
  const begin = Math.floor(number / PAGE) * PAGE;
  const from = Number(link.dataset.from);
  if (begin > from) {
    const item = link.closest("li");
    const between = item.cloneNode(true);
    range(between.querySelector("a"), from, begin);
    item.before(between);
    range(link, begin, Number(link.dataset.to));
  }
  await more(link);
}
function range(link, from, to) {
  Object.assign(link.dataset, { from, to });
  link.textContent = `Show ${Math.min(to - from, PAGE)} more of ${(to - from).toLocaleString("en")} ${to - from === 1 ? "step" : "steps"}`;
  const address = new URL(link.href);
  address.searchParams.set("from", from);
  address.searchParams.set("to", to);
  link.href = address;
}
// Steps out of sight have a guessed height until they are drawn, some frames later.
function steadily(move, left = 12) {
  move();
  if (left) requestAnimationFrame(() => steadily(move, left - 1));
}
async function reach() {
  const match = /^#step-(\d+)$/.exec(location.hash);
  if (!match || !document.querySelector(".steps[data-run]")) return;
  if (!document.getElementById(`step-${match[1]}`)) await fetchPageOf(Number(match[1]));
  const step = document.getElementById(`step-${match[1]}`);
  unfold(step);
  if (step) steadily(() => step.scrollIntoView());
  step?.focus({ preventScroll: true });
}
function unfold(step) {
  const fold = step?.closest(".fold details");
  if (fold) fold.open = true;
}
addEventListener("hashchange", reach);
reach();

// Two runs are shown from where they part; a link to a step that is folded unfolds it.
const parting = document.getElementById("first-difference");
if (parting && !location.hash) parting.scrollIntoView({ block: "center" });
addEventListener("hashchange", () => {
  const pair = document.querySelector(".pairs .pair:target");
  unfold(pair);
  pair?.scrollIntoView({ block: "center" });
});

// The lane of the step in focus is marked; beside the lanes, the texts begin where to look first.
document.addEventListener("focusin", (event) => {
  const step = event.target.closest(".step");
  if (!step) return;
  document.querySelector(".tick[aria-current]")?.removeAttribute("aria-current");
  const tick = document.querySelector(`.tick[href="#${step.id}"]`);
  tick?.setAttribute("aria-current", "true");
  if (tick) within(tick.closest(".lanes"), tick);
});
function within(pane, part) {
  const outer = pane.getBoundingClientRect();
  const inner = part.getBoundingClientRect();
  if (inner.top < outer.top + 32 || inner.bottom > outer.bottom) pane.scrollTop += inner.top - outer.top - outer.height / 3;
}
const pane = document.querySelector(".pane");
const looked = pane?.querySelector(".step.decisive, .step.candidate");
if (looked && !location.hash && pane.scrollHeight > pane.clientHeight) {
  unfold(looked);
  steadily(() => { pane.scrollTop += looked.getBoundingClientRect().top - pane.getBoundingClientRect().top; });
}

// Choosing runs to compare: two, no more and no less.
const comparison = document.getElementById("compare");
if (comparison) {
  const chosen = () => document.querySelectorAll("input[name=run]:checked").length;
  const tell = () => {
    comparison.querySelector("button").disabled = chosen() !== 2;
    for (const other of document.querySelectorAll("button[form=compare]")) other.disabled = chosen() === 0;
  };
  document.addEventListener("change", tell);
  tell();
}

// The list tells its runs to the pages of these: n, p: next and previous run; /: the search; ?: the keys;
// c copies the command that proves the cause.
const listed = addresses(document);
if (listed.length) sessionStorage.setItem("runs", JSON.stringify(listed));
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "?") document.getElementById("keys")?.showModal();
  if (event.key === "c") document.querySelector(".verdict .command-line button")?.click();
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  }
  if (!run || !["n", "p"].includes(event.key)) return;
  const runs = JSON.parse(sessionStorage.getItem("runs") ?? "[]");
  const here = runs.findIndex((address) => address.split("?")[0] === location.pathname);
  const there = runs[here + (event.key === "n" ? 1 : -1)];
  if (here >= 0 && there) location.href = there;
});

// d: the step to look at first; j, k: next and previous step.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const steps = [...document.querySelectorAll(".steps[data-run] .step")];
  if (!steps.length || !["d", "j", "k"].includes(event.key)) return;
  const here = steps.indexOf(document.activeElement.closest(".step"));
  const there = event.key === "d" ? steps.find((step) => step.classList.contains("decisive"))
    : steps[event.key === "j" ? Math.min(here + 1, steps.length - 1) : Math.max(here - 1, 0)];
  if (!there) document.querySelector(".said-lead a")?.click(); // none, or not fetched yet
  unfold(there);
  there?.focus();
});

// l: the label form; x: the step in focus is decisive, or no longer.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const form = document.querySelector("form.label");
  if (!form || !["l", "x"].includes(event.key)) return;
  const field = form.querySelector("[name=decisive_step]");
  if (event.key === "l") {
    event.preventDefault();
    form.closest("details").open = true;
    form.querySelector("input, select").focus();
    return;
  }
  const step = document.activeElement.closest(".step")?.id.replace("step-", "");
  if (step === undefined) return;
  const named = field.value.split(/[ ,]+/).filter(Boolean);
  field.value = (named.includes(step) ? named.filter((each) => each !== step) : [...named, step]).join(", ");
  document.getElementById("marked").textContent = field.value ? `Decisive by your label: ${field.value}` : "No step is marked";
});
