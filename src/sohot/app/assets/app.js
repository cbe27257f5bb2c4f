// The page: asks for the state, and connects its parts.

import * as cards from "./cards.js";
import * as closer from "./closer.js";
import * as comparison from "./comparison.js";
import { chosen, dropped } from "./dropped_files.js";
import { count, find, make, percent } from "./elements.js";
import { ask, wait } from "./requests.js";
import * as training from "./training.js";
import { upload } from "./uploads.js";

let state = null;

function problem(error) {
  find("problem").hidden = false;
  find("problem").textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
  find("problem").scrollIntoView({ block: "nearest" });
}

// Do what a control asks for; it is off meanwhile, and a failure is told in one sentence.
function on(id, event, work) {
  find(id).addEventListener(event, async () => {
    const control = find(id);
    const focused = document.activeElement === control;
    find("problem").hidden = true;
    control.disabled = true;
    try {
      await begun;
      await work();
    } catch (error) {
      problem(error);
    } finally {
      control.disabled = false;
      if (focused && document.activeElement === document.body) control.focus();
    }
  });
}

function showRun({ run, pool, limits }) {
  document.title = `${run.name} – sohot`;
  find("run-name").textContent = run.name;
  const name = `${run.accuracy_name[0].toUpperCase()}${run.accuracy_name.slice(1)}`;
  const [low, high] = run.accuracy?.interval95 ?? [];
  const tested = run.accuracy
    ? `${name} ${percent(run.accuracy.micro, 1)} (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}) of ${count(run.accuracy.rows, "image")}.`
    : "It was not tested.";
  find("run-facts").textContent = `${run.method} on ${run.backbone}, ${run.classes.length} classes. ${tested}`;
  const caution = run.caution ? ` Note: ${run.caution}.` : "";
  find("run-calibration").textContent = `Probabilities: ${run.calibration}.${caution}`;
  find("limits").textContent = `Up to ${limits.images} images of at most ${Math.floor(limits.bytes / 2 ** 20)} MB. They stay on this machine.`;
  const where = find("suggest-where");
  where.querySelector("[value=pool]")?.remove();
  if (pool) where.append(make("option", { value: "pool" }, `the run's ${count(pool, "unlabelled image")}`));
}

// Show the run and the images there are; what it says about them follows.
async function start() {
  state = await ask("GET", "api/state");
  showRun(state);
  closer.begin(state.run.classes);
  cards.begin(state.run.classes, { onLabels: training.showLabels, onCloser: look, onGone: closer.leave, onProblem: problem });
  training.begin(state, { onUse: use, onTrained: listRuns });
  comparison.begin(state);
  for (const image of state.images) cards.add(image);
}

async function answerAll() {
  for (const { key } of state.images) {
    if (cards.get(key)) await cards.answer(cards.get(key));
  }
}

async function look(card) {
  try {
    if (!card.top) await cards.answer(card);
    await closer.look(card);
  } catch (error) {
    problem(error);
  }
}

async function use(key) {
  try {
    await ask("PUT", "api/run", { run: key });
    find("training-result").replaceChildren();
    cards.forget();
    await start();
    find("training-status").textContent = `The page now uses ${state.run.name}.`;
    find("run-name").focus();
    window.scrollTo(0, 0);
    await answerAll();
  } catch (error) {
    problem(error);
  }
}

async function listRuns() {
  comparison.begin(await ask("GET", "api/state"));
}

async function suggest() {
  let waiting = true;
  const asked = ask("POST", "api/suggestions", {
    where: find("suggest-where").value,
    count: Number(find("suggest-count").value),
  }).finally(() => { waiting = false; });
  (async () => {
    while (waiting) {
      const { progress } = await ask("GET", "api/progress");
      if (waiting && progress) find("upload-status").textContent = `${progress[0]}: ${progress[1]} of ${progress[2]}`;
      await wait(500);
    }
  })();
  const { suggested } = await asked;
  cards.suggest(suggested);
  find("upload-status").textContent = `${count(suggested.length, "image is", "images are")} suggested, the most useful first.`;
  for (const { key } of suggested) await cards.answer(cards.get(key));
}

// Upload files, once the page knows its run.
async function take(found) {
  try {
    const files = await found;
    await begun;
    upload(files, state.limits);
  } catch (error) {
    problem(error);
  }
}

function takeDrops() {
  const zone = find("drop");
  for (const event of ["dragenter", "dragover"]) {
    document.addEventListener(event, (drag) => { drag.preventDefault(); zone.classList.add("over"); });
  }
  document.addEventListener("dragleave", (drag) => { if (!drag.relatedTarget) zone.classList.remove("over"); });
  document.addEventListener("drop", (drop) => {
    drop.preventDefault();
    zone.classList.remove("over");
    take(dropped(drop.dataTransfer));
  });
  for (const id of ["files", "folder"]) {
    find(id).addEventListener("change", () => take(chosen(find(id))));
    if (find(id).files.length) take(chosen(find(id))); // chosen before this script was here
  }
}

const begun = start();
begun.then(() => Promise.all([answerAll(), training.watch()])).catch(problem);
takeDrops();
on("suggest", "click", suggest);
on("clear", "click", cards.clear);
on("compare", "click", comparison.compare);
on("use", "click", () => use(find("compare-with").value));
find("train").addEventListener("click", () => training.train().catch(problem));
find("stop").addEventListener("click", () => training.stop().catch(problem));
find("order").addEventListener("change", () => cards.order(find("order").value));
find("closer-back").addEventListener("click", closer.goBack);
