// What the browser keeps for the page. It may refuse, or be full: then nothing is kept.

class Shelf {
  constructor(private readonly open: () => Storage) {}

  get(key: string): string | null {
    try {
      return this.open().getItem(key);
    } catch {
      return null;
    }
  }

  /** Return what was put there as JSON; null if that is not to be had. */
  read<T>(key: string): T | null {
    try {
      return JSON.parse(this.get(key) ?? "null") as T | null;
    } catch {
      return null;
    }
  }

  /** Put something there, or with null, take it away; return whether the browser did. */
  put(key: string, text: string | null): boolean {
    try {
      if (text === null) this.open().removeItem(key);
      else this.open().setItem(key, text);
      return true;
    } catch {
      return false;
    }
  }
}

/** Kept until the tab is closed. */
export const tab = new Shelf(() => sessionStorage);

/** Kept for all tabs, until it is taken away. */
export const browser = new Shelf(() => localStorage);
