// A value that views subscribe to.

import { useEffect, useState } from "preact/hooks";

export class Source<T extends object> {
  private followers = new Set<() => void>();

  constructor(public value: T) {}

  change(changes: Partial<T>): void {
    this.value = { ...this.value, ...changes };
    this.followers.forEach((follower) => follower());
  }

  follow(follower: () => void): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }
}

export function useSource<T extends object>(source: Source<T>): T {
  const [value, setValue] = useState(source.value);
  useEffect(() => {
    const follow = () => setValue(source.value);
    follow();
    return source.follow(follow);
  }, [source]);
  return value;
}
