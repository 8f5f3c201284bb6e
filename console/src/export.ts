// Tables as files: CSV for spreadsheets, JSON for programs.

export type Value = string | number | null;

export interface Listing {
  columns: readonly string[];
  rows: readonly (readonly Value[])[];
}

export function csv({ columns, rows }: Listing): string {
  return [columns, ...rows].map((row) => `${row.map(cell).join()}\r\n`).join("");
}

/** Spreadsheets run a text that begins like a formula, and names are chosen by others. */
function cell(value: Value): string {
  if (value === null) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const text = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function json({ columns, rows }: Listing): string {
  const documents = rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at] ?? null])));
  return `${JSON.stringify(documents, null, 1)}\n`;
}
