// Training again: started, watched, stopped; and what it changed.

import { table } from "./comparison.js";
import { curves } from "./curves.js";
import { count, find, make } from "./elements.js";
import { ask, wait } from "./requests.js";

const EVERY = 700; // milliseconds
let watching = false;
let why = null; // why the run cannot train again
let labels = 0;
let handlers = {};

export function begin(state, given) {
  why = state.why_not;
  handlers = given;
  showLabels(state.labelled, state.labelled_folder);
}

export function showLabels(labelled, folder) {
  labels = Object.values(labelled).reduce((sum, number) => sum + number, 0);
  const each = Object.entries(labelled).map(([name, number]) => `${name}: ${number}`).join(", ");
  if (folder) find("labelled-words").dataset.folder = folder;
  const then = why === null ? " Training again adds them to the target images." : "";
  find("labelled-words").textContent = labels
    ? `${count(labels, "labelled image")} (${each}), in ${find("labelled-words").dataset.folder}.${then}`
    : `Give images labels: confirm or correct what the run says.${then}`;
  allow();
}

function allow() {
  find("train").disabled = watching || !labels || why !== null;
  find("train").hidden = watching;
  find("stop").hidden = !watching;
  if (why !== null) find("training-status").textContent = `Training again is not possible: ${why}.`;
}

export async function train() {
  find("training-result").replaceChildren();
  find("curves").replaceChildren();
  await ask("POST", "api/training");
  watch();
}

export async function stop() {
  find("training-status").textContent = "Stopping…";
  await ask("DELETE", "api/training");
}

export async function watch() {
  let job = await ask("GET", "api/training");
  if (job.state === "none" || watching) return;
  watching = job.state === "running";
  allow();
  if (watching) find("stop").focus();
  for (; job.state === "running"; job = await ask("GET", "api/training")) {
    show(job);
    find("training-status").textContent = `Training ${job.run}…`;
    await wait(EVERY);
  }
  watching = false;
  allow();
  show(job);
  await ended(job);
}

function show(job) {
  find("training-said").textContent = job.said;
  find("curves").replaceChildren(...curves(job.curves, job.steps));
}

async function ended(job) {
  if (job.state !== "finished") {
    find("training-status").textContent = job.state === "stopped" ? `The training of ${job.run} was stopped.` : "The training failed.";
    find("train").focus();
    return;
  }
  find("training-said").textContent = "";
  const frozen = Object.keys(job.curves).length ? "" : " It is a classifier on frozen features, which is found without steps.";
  find("training-status").textContent = `The new run ${job.run} is trained.${frozen}`;
  if (job.used) return;
  const use = make("button", { type: "button", class: "main", onclick: () => handlers.onUse(job.key) }, `Use ${job.run}`);
  const result = find("training-result");
  result.replaceChildren(make("p", {}, use));
  try {
    result.prepend(table(await ask("GET", `api/comparison?with=${encodeURIComponent(job.key)}`)));
  } catch (error) {
    result.prepend(make("p", {}, `${error.message}.`));
  }
  handlers.onTrained();
  use.focus();
}
