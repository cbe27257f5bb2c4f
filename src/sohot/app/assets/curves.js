// Curves of a training, drawn as they grow.

import { draw, make, percent } from "./elements.js";

const WIDTH = 460;
const HEIGHT = 220;
const LEFT = 46;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 30;

export function curves(found, steps) {
  const drawn = [];
  if (found.loss) drawn.push(chart("Loss", { loss: found.loss }, steps, (value) => value.toPrecision(2)));
  const shares = { source: found.accuracy_source, target: found.accuracy_target };
  const known = Object.fromEntries(Object.entries(shares).filter(([, points]) => points?.length));
  if (Object.keys(known).length) drawn.push(chart("Accuracy on training images", known, steps, (value) => percent(value), [0, 1]));
  return drawn;
}

function chart(title, lines, steps, write, range) {
  const values = Object.values(lines).flat().map(([, value]) => value);
  const [low, high] = range ?? [Math.min(0, ...values), Math.max(...values, 1e-9)];
  const last = Math.max(steps ?? 0, ...Object.values(lines).flat().map(([step]) => step), 1);
  const x = (step) => LEFT + ((WIDTH - LEFT - RIGHT) * step) / last;
  const y = (value) => TOP + ((HEIGHT - TOP - BOTTOM) * (high - value)) / (high - low || 1);
  const latest = Object.entries(lines).map(([name, points]) => `${name} ${write(points.at(-1)[1])}`).join(", ");
  const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}, now ${latest}` });
  for (const value of [low, (low + high) / 2, high]) {
    picture.append(draw("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }),
      text(LEFT - 6, y(value) + 4, write(value), "end"));
  }
  picture.append(text(LEFT, HEIGHT - 8, "0", "start"), text(WIDTH - RIGHT, HEIGHT - 8, `step ${last}`, "end"));
  Object.values(lines).forEach((points, place) => {
    const path = points.map(([step, value]) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    picture.append(draw("polyline", { points: path, class: `line line-${place}` }));
  });
  const names = Object.keys(lines).map((name, place) => make("span", { class: `key key-${place}` }, name));
  return make("figure", {}, make("figcaption", {}, title, " ", ...(names.length > 1 ? names : [])), picture);
}

function text(x, y, words, anchor) {
  const element = draw("text", { x, y, "text-anchor": anchor });
  element.textContent = words;
  return element;
}
