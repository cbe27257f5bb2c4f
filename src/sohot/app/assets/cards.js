// The list of images: what the run says about each, and the label that the user gives it.

import { find, make, percent } from "./elements.js";
import { ask } from "./requests.js";

const cards = new Map(); // by key: { key, name, label, top, why, element, … }
let classes = [];
let onLabels = () => {};
let onCloser = () => {};
let onGone = () => {};
let onProblem = () => {};

export function begin(names, handlers) {
  classes = names;
  ({ onLabels, onCloser, onGone, onProblem } = handlers);
}

export const all = () => [...cards.values()];
export const get = (key) => cards.get(key);

export function add(image) {
  const card = cards.get(image.key) ?? { ...image, place: cards.size };
  if (!cards.has(image.key)) {
    cards.set(image.key, card);
    card.element = build(card);
    find("cards").append(card.element);
  }
  Object.assign(card, image);
  show(card);
  find("tools").hidden = !cards.size;
  return card;
}

// What the run says about an image. Its label may have changed since the question, so it is not taken from the answer.
export async function answer(card) {
  const { label: _, ...said } = await ask("GET", `api/images/${card.key}`);
  Object.assign(card, said);
  show(card);
}

// Forget what the run said: another one is asked from now on.
export function forget() {
  for (const card of all()) {
    Object.assign(card, { top: null, neighbours: null, place_on_map: null });
    show(card);
  }
}

function build(card) {
  const id = `label-${card.key}`;
  const choice = make("select", { id, onchange: (event) => label(card, event.target.value || null) });
  choice.append(make("option", { value: "" }, "no label"), ...classes.map((name) => make("option", { value: name }, name)));
  return make(
    "li",
    { class: "card", "data-key": card.key },
    make("img", { src: `images/${card.key}`, alt: "", loading: "lazy" }),
    make("div", { class: "body" },
      make("p", { class: "name", title: card.name }, card.name),
      make("p", { class: "why", hidden: true }),
      make("ol", { class: "top" }),
      make("p", { class: "row" },
        make("button", { type: "button", class: "confirm", hidden: true, onclick: () => label(card, card.top[0].label) }),
        make("label", { for: id, class: "choice" }, "Label ", choice)),
      make("p", { class: "row" },
        make("button", { type: "button", class: "look", onclick: () => onCloser(card) }, "Look closer"),
        make("button", { type: "button", class: "remove", "aria-label": `Remove ${card.name}`, onclick: () => remove(card) }, "Remove"))));
}

function show(card) {
  const part = (css) => card.element.querySelector(css);
  part("ol").replaceChildren(make("li", { class: "quiet" }, "…"));
  if (card.top) {
    part("ol").replaceChildren(...card.top.map(({ label: name, probability }) => make("li", {},
      make("span", { class: "label" }, name),
      make("meter", { min: 0, max: 1, value: probability, "aria-hidden": "true" }),
      make("span", { class: "share" }, percent(probability)))));
    part(".confirm").textContent = `It is ${card.top[0].label}`;
    part("img").alt = `${card.name}: ${card.top[0].label}, ${percent(card.top[0].probability)} sure`;
  }
  part(".confirm").hidden = !card.top || card.label !== null;
  part("select").value = card.label ?? "";
  card.element.classList.toggle("labelled", card.label !== null);
  part(".why").hidden = !card.why;
  part(".why").textContent = card.why ? `Label this: ${card.why}` : "";
}

async function label(card, name) {
  const { activeElement } = document;
  try {
    const said = await ask("PUT", `api/images/${card.key}/label`, { label: name });
    card.label = said.label;
    if (said.label) card.why = "";
    onLabels(said.labelled);
  } catch (error) {
    onProblem(error);
  }
  show(card);
  if (activeElement?.hidden) card.element.querySelector("select").focus(); // the button is gone, so the next one
}

async function remove(card) {
  const next = card.element.nextElementSibling ?? card.element.previousElementSibling;
  try {
    gone(await ask("DELETE", `api/images/${card.key}`));
    (next?.querySelector(".remove") ?? find("files")).focus();
  } catch (error) {
    onProblem(error);
  }
}

export async function clear() {
  gone(await ask("DELETE", "api/images"));
}

function gone({ removed, labelled }) {
  for (const key of removed) {
    if (cards.has(key)) onGone(cards.get(key));
    cards.get(key)?.element.remove();
    cards.delete(key);
  }
  find("tools").hidden = !cards.size;
  onLabels(labelled);
}

const ORDERS = {
  dropped: (one, other) => one.place - other.place,
  unsure: (one, other) => (one.top?.[0].probability ?? 2) - (other.top?.[0].probability ?? 2),
  suggested: (one, other) => (one.rank ?? Infinity) - (other.rank ?? Infinity) || one.place - other.place,
};

export function order(how) {
  find("order").value = how;
  find("cards").append(...all().sort(ORDERS[how]).map((card) => card.element));
}

export function suggest(suggested) {
  for (const card of all()) Object.assign(card, { rank: undefined, why: "" });
  // A card that is there knows its label best.
  suggested.forEach((image, rank) => add({ ...image, ...cards.get(image.key), why: image.why, rank }));
  all().forEach(show);
  order("suggested");
}
