/** Offers a text as a file of the browser's. */
export function saveText(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // the browser has taken its copy by then
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
