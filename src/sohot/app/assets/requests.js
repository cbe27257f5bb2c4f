// Requests to the app. Addresses are relative, so they hold the token of the page's own address.

export async function ask(method, path, body) {
  const json = body !== undefined && !(body instanceof Blob);
  let answer;
  try {
    answer = await fetch(path, {
      method,
      body: json ? JSON.stringify(body) : body,
      headers: json ? { "Content-Type": "application/json" } : {},
    });
  } catch {
    throw new Error("the app does not answer: is it still running in its terminal?");
  }
  const text = await answer.text();
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    if (answer.ok) throw new Error("the app sent something else than an answer");
  }
  if (!answer.ok) throw new Error(value?.error ?? (text || `the app answers with the error ${answer.status}`));
  return value;
}

export const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
