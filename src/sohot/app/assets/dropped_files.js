// Files that the user drops or chooses, also those in folders, with the names that they have there.

const IMAGES = /\.(jpe?g|jpe|jfif|a?png|bmp|dib|gif|tiff?|webp|avif|p[pgbn]m|tga|jp2|j2k|hei[cf])$/i;

const isImage = (file) => file.type.startsWith("image/") || IMAGES.test(file.name);

const byName = (one, other) => one.name.localeCompare(other.name, "en", { numeric: true });

const entries = (reader) => new Promise((done, failed) => reader.readEntries(done, failed));

async function below(entry, found) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed));
    found.push({ file, name: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = entry.createReader();
  const inside = [];
  for (let some = await entries(reader); some.length; some = await entries(reader)) inside.push(...some);
  for (const one of inside.sort(byName)) await below(one, found);
}

function sorted(found) {
  return { images: found.filter(({ file }) => isImage(file)), others: found.filter(({ file }) => !isImage(file)).length };
}

export function chosen(input) {
  const found = [...input.files].map((file) => ({ file, name: file.webkitRelativePath || file.name }));
  input.value = "";
  if (input.webkitdirectory) found.sort(byName);
  return sorted(found.filter(({ file }) => !file.name.startsWith(".")));
}

export async function dropped(transfer) {
  // Entries must be asked for at once: after the first wait the browser has forgotten the drop.
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const given = items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  const found = [];
  for (const one of given) {
    if (one instanceof File) found.push({ file: one, name: one.name });
    else if (one) await below(one, found);
  }
  return sorted(found);
}
