// What a view reads by itself: the last answer stays until there is another.

import { useEffect, useState } from "preact/hooks";
import { away, type Failure, wrap } from "../api.ts";
import { useSource } from "../source.ts";
import { age } from "../unit.ts";

interface Answer<T> {
  question: string;
  answer: T;
  moment: Date;
}

export interface Reading<T> {
  /** The last answer to the question; null before there is one. */
  answer: T | null;
  /** When it was asked for. */
  moment: Date | null;
  /** Why there is no newer one. */
  failure: Failure | null;
  again: () => void;
}

/**
 * Read the answer to a question, and read it again whenever `times` changes.
 *
 * @param read asks the question; null if it may not be asked
 */
export function useReading<T>(
  question: string,
  read: ((signal: AbortSignal) => Promise<T>) | null,
  times: unknown = null,
): Reading<T> {
  const [last, setLast] = useState<Answer<T> | null>(null);
  const [failed, setFailed] = useState<{ question: string; failure: Failure } | null>(null);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    const moment = new Date();
    read?.(control.signal)
      .then((answer) => {
        setLast({ question, answer, moment });
        setFailed(null);
      })
      .catch((error) => control.signal.aborted || setFailed({ question, failure: wrap(error, question) }));
    return () => control.abort();
  }, [question, times, tries, read === null]);
  const { since } = useSource(away);
  useEffect(() => {
    if (since || !failed) return;
    setFailed(null);
    setTries(tries + 1);
  }, [since]);
  const known = read && last?.question === question ? last : null;
  return {
    answer: known?.answer ?? null,
    moment: known?.moment ?? null,
    failure: read && failed?.question === question ? failed.failure : null,
    again: () => {
      setFailed(null);
      setTries(tries + 1);
    },
  };
}

interface OldOf {
  /** What it is about, at the beginning of a sentence: `the host`. */
  what: string;
  moment: Date;
  failure: Failure;
  again: () => void;
  disabled?: boolean;
}

/** That something could not be read again, and since when it is as it is shown. */
export function Old({ what, moment, failure, again, disabled = false }: OldOf) {
  if (useSource(away).since) return null;
  return (
    <p class="stale" role="alert">
      <strong>
        State of {what} at {moment.toLocaleTimeString()}
      </strong>
      , {age(moment, new Date())} ago. Reading it again failed: {failure.detail}{" "}
      <button type="button" class="small" onClick={again} disabled={disabled}>
        Try again
      </button>
    </p>
  );
}
