// Two runs side by side: accuracies, classes, and the images on which they differ.

import { count, find, make, percent } from "./elements.js";
import { ask } from "./requests.js";

export function begin(state) {
  find("compare-first").textContent = state.run.name;
  const options = state.runs.map(({ key, name }) => make("option", { value: key }, name));
  find("compare-with").replaceChildren(...options);
  if (state.compare_with !== null) find("compare-with").value = state.compare_with;
  find("compare-tools").hidden = !options.length;
  find("compare-words").textContent = options.length ? "" : "There is no other finished run beside this one.";
  find("comparison").replaceChildren();
}

export async function compare() {
  find("compare-words").textContent = "Comparing…";
  const found = await ask("GET", `api/comparison?with=${encodeURIComponent(find("compare-with").value)}`);
  find("compare-words").textContent = `They differ on ${found.differ} of ${count(found.images, "image")} that tested both.`;
  find("comparison").replaceChildren(table(found), byClass(found), ...pictures(found));
}

const cells = (tag, values) => values.map((value) => make(tag, {}, value));

const range = ([low, high]) => `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}`;

function own({ accuracy, interval95, images }) {
  return accuracy === null ? "not tested" : `${percent(accuracy, 1)} (${range(interval95)}) of ${images}`;
}

export function table(found) {
  const { first, second, images, right } = found;
  const name = [...new Set([first.accuracy_name, second.accuracy_name])].join(" and ");
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Accuracy" }, make("table", {},
    make("caption", {}, `${name[0].toUpperCase()}${name.slice(1)}; its 95 % interval. Only images that tested both runs can be compared.`),
    make("thead", {}, make("tr", {}, ...cells("th", ["", first.name, second.name]))),
    make("tbody", {},
      make("tr", {}, make("th", { scope: "row" }, `on the ${count(images, "image")} that tested both`),
        ...cells("td", right.map((number) => `${percent(number / images, 1)} (${number})`))),
      make("tr", {}, make("th", { scope: "row" }, "each on its own test images"), ...cells("td", [own(first), own(second)])))));
}

function byClass({ first, second, classes }) {
  const rows = classes.map(({ name, images, right }) => make("tr", { class: right[1] > right[0] ? "gain" : right[1] < right[0] ? "loss" : "" },
    make("th", { scope: "row" }, name), ...cells("td", [`${images}`, percent(right[0] / images, 1), percent(right[1] / images, 1)])));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Classes" }, make("table", {},
    make("caption", {}, "By class, on the images that tested both"),
    make("thead", {}, make("tr", {}, ...cells("th", ["class", "images", first.name, second.name]))),
    make("tbody", {}, ...rows)));
}

function pictures({ first, second, differ, different }) {
  if (!differ) return [];
  const said = (name, { label, probability, right }) => make("span", { class: right ? "right" : "wrong" },
    `${name}: ${label}, ${percent(probability)}${right ? " ✓" : " ✗"}`);
  const items = different.map(({ row, truth, said: answers }) => make("li", {},
    make("img", { src: `run-images/test/${row}`, alt: "", loading: "lazy" }),
    make("span", { class: "label" }, truth), said(first.name, answers[0]), said(second.name, answers[1])));
  const some = different.length < differ ? `, the first ${different.length}` : "";
  return [make("h3", {}, `Images on which they differ${some}`), make("ul", { class: "different" }, ...items)];
}
