// The map: features of the run's images in the plane (PCA), and the dropped images among them.

import { draw, find, make } from "./elements.js";

const WIDTH = 440;
const HEIGHT = 340;
const MARGIN = 14;
const SHAPES = {
  source: (x, y) => ["circle", { cx: x, cy: y, r: 3 }],
  target: (x, y) => ["path", { d: `M${x} ${y - 6}l1.8 4.2 4.5 .4-3.4 3 1 4.4-3.9-2.3-3.9 2.3 1-4.4-3.4-3 4.5-.4z` }],
  test: (x, y) => ["path", { d: `M${x - 3} ${y - 3}l6 6m0-6l-6 6`, class: "cross" }],
};
const WORDS = { source: "source images that trained", target: "target images that trained", test: "target images that did not" };

export function drawMap(parts, classes, card, others) {
  const places = [...parts.flatMap((part) => part.places), ...others.map((one) => one.place_on_map)];
  const scale = [0, 1].map((axis) => {
    const values = places.map((place) => place[axis]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const room = (axis ? HEIGHT : WIDTH) - 2 * MARGIN;
    return (value) => MARGIN + (room * (value - least)) / (most - least || 1);
  });
  const at = ([x, y]) => [scale[0](x).toFixed(1) * 1, (HEIGHT - scale[1](y)).toFixed(1) * 1];
  const likely = (card.top ?? []).map(({ label }) => label);
  const picture = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": "map-words" });
  const marks = parts.flatMap(({ part, classes: numbers, places: points }) => points.map((place, row) => {
    const rank = likely.indexOf(classes[numbers[row]]);
    const [tag, attributes] = SHAPES[part](...at(place));
    const colour = rank < 0 ? "other" : `likely-${rank}`;
    const title = draw("title");
    title.textContent = `${classes[numbers[row]]}, ${WORDS[part]}`;
    return { rank, mark: draw(tag, { ...attributes, class: `${attributes.class ?? ""} ${colour}` }, title) };
  }));
  marks.sort((one, other) => (one.rank < 0 ? -1 : 0) - (other.rank < 0 ? -1 : 0)); // coloured ones on top
  picture.append(...marks.map(({ mark }) => mark));
  for (const one of others.filter((other) => other !== card)) picture.append(ring(at(one.place_on_map), 4, "also"));
  if (card.place_on_map) picture.append(ring(at(card.place_on_map), 9, "here"), ring(at(card.place_on_map), 2, "centre"));
  find("map").replaceChildren(picture);
  legend(likely, parts, others.length > 1);
}

const ring = ([x, y], r, kind) => draw("circle", { cx: x, cy: y, r, class: kind });

function legend(likely, parts, several) {
  const symbol = (kind, ...shape) => {
    const picture = draw("svg", { viewBox: "-8 -8 16 16", class: "symbol", "aria-hidden": "true" });
    const [tag, attributes] = shape;
    picture.append(draw(tag, { ...attributes, class: `${attributes.class ?? ""} ${kind}` }));
    return picture;
  };
  find("map-words").textContent =
    "The ring is this image. Features of the images that the run keeps (up to 20 of each class) in the two directions "
    + "in which they differ most.";
  find("map-legend").replaceChildren(
    ...likely.map((name, rank) => make("li", {}, symbol(`likely-${rank}`, "circle", { cx: 0, cy: 0, r: 5 }), name)),
    make("li", {}, symbol("other", "circle", { cx: 0, cy: 0, r: 5 }), "other classes"),
    ...parts.map(({ part }) => make("li", {}, symbol("mark", ...SHAPES[part](0, 0)), WORDS[part])),
    ...(several ? [make("li", {}, symbol("also", "circle", { cx: 0, cy: 0, r: 4 }), "other dropped images")] : []));
}
