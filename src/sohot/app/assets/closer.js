// One image more closely: the training images most like it, of both domains, and its place on the map.

import { all } from "./cards.js";
import { find, make } from "./elements.js";
import { drawMap } from "./map.js";
import { ask } from "./requests.js";

let map = null; // asked for once for each run
let classes = [];
let back = null;
const wide = window.matchMedia("(min-width: 64rem)"); // as in app.css

export function begin(names) {
  map = null;
  classes = names;
  find("closer").hidden = true;
}

export async function look(card) {
  map ??= await ask("GET", "api/map");
  const place = find("closer");
  place.hidden = false;
  (wide.matches ? document.querySelector(".columns") : card.element).append(place); // beside the list, or in it
  back = card;
  find("closer-title").textContent = card.name;
  const domains = { source: "Nearest source images", target: "Nearest labelled target images" };
  const shown = Object.entries(domains).flatMap(([part, title]) => neighbours(card, part, title));
  const nothing = make("p", {}, "What trained this model is not kept with it, so there are no neighbours and no map.");
  find("closer-neighbours").replaceChildren(...(shown.length ? shown : [nothing]));
  place.querySelector(".map").hidden = !map.length;
  if (map.length) drawMap(map, classes, card, all().filter((one) => one.place_on_map));
  place.focus();
  place.scrollIntoView({ block: "nearest" });
}

// Take the place out of a card that goes.
export function leave(card) {
  if (back !== card) return;
  document.querySelector(".columns").append(find("closer"));
  find("closer").hidden = true;
}

export function goBack() {
  back?.element.querySelector(".look").focus();
  back?.element.scrollIntoView({ block: "nearest" });
}

function neighbours(card, part, title) {
  const found = card.neighbours?.[part] ?? [];
  if (!found.length) return [];
  const pictures = found.map(({ row, label, likeness }) => make("li", {},
    make("img", { src: `run-images/${part}/${row}`, alt: "", loading: "lazy" }),
    make("span", { class: "label" }, label),
    make("span", { class: "quiet" }, `${likeness.toFixed(2)} alike`)));
  return [make("h4", {}, title), make("ul", { class: "neighbours" }, ...pictures)];
}
