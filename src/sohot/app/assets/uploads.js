// Uploads: one after another, each shown and labelled at once; what is refused is listed with the reason.

import { add, answer } from "./cards.js";
import { count, find, make } from "./elements.js";
import { ask } from "./requests.js";

const MOST_LISTED = 20;
const waiting = [];
let done = 0;
let total = 0;
let refused = 0;
let working = false;

export function upload({ images, others }, limits) {
  if (!working) {
    done = total = refused = 0;
    find("upload-refused").replaceChildren();
  }
  if (!images.length) {
    find("upload-status").textContent = others ? "None of these files is an image." : "There are no images in it.";
    return;
  }
  if (others) refuse(count(others, "file is not an image", "files are not images"));
  waiting.push(...images);
  total += images.length;
  if (!working) work(limits);
}

async function work(limits) {
  working = true;
  while (waiting.length) {
    const { file, name } = waiting.shift();
    tell();
    try {
      if (file.size > limits.bytes) throw new Error(`the file is larger than ${Math.floor(limits.bytes / 2 ** 20)} MB`);
      await answer(add(await ask("PUT", `api/images?name=${encodeURIComponent(name)}`, file)));
    } catch (error) {
      refused += 1;
      refuse(error.message.startsWith(name) ? error.message : `${name}: ${error.message}`);
    }
    done += 1;
  }
  working = false;
  tell();
}

function refuse(sentence) {
  const list = find("upload-refused");
  if (list.children.length < MOST_LISTED) list.append(make("li", {}, sentence));
  else if (list.children.length === MOST_LISTED) list.append(make("li", {}, "… and others"));
}

function tell() {
  const bar = find("upload-progress");
  bar.hidden = !working;
  bar.max = total;
  bar.value = done;
  find("upload-status").textContent = working
    ? `${done} of ${count(total, "image")} done`
    : `${count(done - refused, "image is", "images are")} here${refused ? `, ${refused} refused` : ""}.`;
}
