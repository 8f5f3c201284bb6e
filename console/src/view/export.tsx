// Two buttons that save a table as a file: all of its rows, not only those that are shown.

import { csv, json, type Listing } from "../export.ts";

export function Export({ name, list }: { name: string; list: () => Listing }) {
  const save = (type: string, text: string, end: string) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `${name}.${end}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url));
  };
  return (
    <p class="row export">
      <span class="dim">Save as</span>
      <button type="button" class="small" aria-label={`Save ${name} as CSV`} onClick={() => save("text/csv", csv(list()), "csv")}>
        CSV
      </button>
      <button type="button" class="small" aria-label={`Save ${name} as JSON`} onClick={() => save("application/json", json(list()), "json")}>
        JSON
      </button>
    </p>
  );
}
