// A table: sorted by any column, a page at a time, and saved as a file with all of its rows.

import type { ComponentChildren } from "preact";
import type { Listing, Value } from "../export.ts";
import { change, usePlace } from "../route.ts";
import { count, natural } from "../unit.ts";
import { Export } from "./export.tsx";
import { Amount, Name, usePage } from "./part.tsx";

export interface Column<Row> {
  /** Its name in files and addresses. */
  id: string;
  /** Its heading; a column without one is in files only, and one with an empty one is a picture. */
  title?: string;
  /** What is saved, and what rows are sorted by. */
  value?: (row: Row) => Value;
  /** What is shown, if it is not the value. */
  cell?: (row: Row) => ComponentChildren;
  kind?: "number" | "name" | "mono";
  hint?: string;
  /** Whether it is shown only. */
  isNotSaved?: boolean;
}

interface TableOf<Row> {
  label: string;
  /** The name of the file, and of the order in the address; without one, it has neither. */
  name?: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  keyOf: (row: Row, place: number) => string | number;
  /** How many rows are shown at first, and what makes it begin again. */
  page?: number;
  pageKey?: string;
  isChosen?: (row: Row) => boolean;
  /** What is saved, if it is not the rows. */
  list?: () => Listing;
  foot?: ComponentChildren;
  className?: string;
}

const MANY = 4;

export function Table<Row>(table: TableOf<Row>) {
  const { label, name = "", columns, rows, keyOf, page = 200, pageKey = "", isChosen, foot, className = "" } = table;
  const parameter = `sort-${name}`;
  const order = usePlace().query.get(parameter) ?? "";
  const by = columns.find(({ id }) => id === order.replace(/^-/, ""));
  const sorted = name && by?.value ? sort(rows, by.value, order.startsWith("-")) : rows;
  const [most, more] = usePage(page, pageKey + order);
  const shown = columns.filter(({ title }) => title !== undefined);
  // On a phone, each row of many columns is a list of two: names and values.
  const isMany = shown.filter(({ title }) => title).length > MANY && className !== "funnel";
  const press = ({ id, kind }: Column<Row>) => {
    const [first, second] = kind === "number" ? [`-${id}`, id] : [id, `-${id}`];
    change({ [parameter]: order === first ? second : first }, "replace");
  };
  return (
    <>
      <div class="wide" tabIndex={0} role="region" aria-label={label}>
        <table class={isMany ? `${className} many` : className}>
          <thead>
            <tr>
              {shown.map((column) =>
                column.title ? (
                  <th key={column.id} class={column.kind === "number" ? "number" : ""} title={column.hint} aria-sort={sortOf(column, by, order)}>
                    {name && column.value ? (
                      <button type="button" class="plain" onClick={() => press(column)}>
                        {column.title}
                        {column === by && (order.startsWith("-") ? " ↓" : " ↑")}
                      </button>
                    ) : (
                      column.title
                    )}
                  </th>
                ) : (
                  <td key={column.id} class="bar-column" />
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, most).map((row, place) => (
              <tr key={keyOf(row, place)} class={isChosen?.(row) ? "chosen" : ""}>
                {shown.map(({ id, title, kind, cell, value }) => (
                  <td key={id} class={title ? kind : "bar-column"} data-title={title}>
                    {cell ? cell(row) : <Plain value={value!(row)} />}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
          {foot && <tfoot>{foot}</tfoot>}
        </table>
      </div>
      {more(rows.length)}
      {name && rows.length > 0 && <Export name={name} list={table.list ?? (() => listed(columns, sorted))} />}
    </>
  );
}

/** A column of amounts of a resource class. */
export function amountColumn<Row>(name: string, amountOf: (row: Row) => number | undefined): Column<Row> {
  const value = (row: Row) => amountOf(row) ?? null;
  return { id: name, title: name, kind: "number", value, cell: (row) => (value(row) === null ? "–" : <Amount name={name} value={value(row)!} />) };
}

function Plain({ value }: { value: Value }) {
  if (value === null || value === "") return <>–</>;
  return typeof value === "number" ? <>{count(value)}</> : <Name text={value} />;
}

function sortOf<Row>(column: Column<Row>, by: Column<Row> | undefined, order: string) {
  if (column !== by) return undefined;
  return order.startsWith("-") ? "descending" : "ascending";
}

/** Sort rows; those without a value come last in either order. */
function sort<Row>(rows: readonly Row[], value: (row: Row) => Value, isDown: boolean): Row[] {
  const keyed = rows.map((row) => ({ row, key: value(row) }));
  keyed.sort(({ key: a }, { key: b }) => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return (isDown ? -1 : 1) * (typeof a === "number" && typeof b === "number" ? a - b : natural(String(a), String(b)));
  });
  return keyed.map(({ row }) => row);
}

function listed<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): Listing {
  const saved = columns.filter(({ value, isNotSaved }) => value && !isNotSaved);
  return {
    columns: saved.map(({ id }) => id),
    rows: rows.map((row) => saved.map(({ value }) => value!(row))),
  };
}
