// What is shown instead of a view that does not work: a sentence, and a way on.

import { Component, type ComponentChildren } from "preact";
import { address, type Place } from "../route.ts";

interface Guarded {
  place: Place;
  children: ComponentChildren;
}

interface Caught {
  error: Error | null;
  /** Where it happened: elsewhere, the view is tried again. */
  at: Place | null;
}

export class Boundary extends Component<Guarded, Caught> {
  override state: Caught = { error: null, at: null };

  override componentDidCatch(error: unknown): void {
    const known = error instanceof Error ? error : new Error(String(error));
    this.setState({ error: known, at: this.props.place });
  }

  override render(): ComponentChildren {
    const { error, at } = this.state;
    if (!error || at !== this.props.place) return this.props.children;
    return (
      <section class="state failed" role="alert">
        <h2 class="title">This view cannot be shown</h2>
        <p>
          The fault is in the console, not in the cloud: <code>{error.message}</code>
        </p>
        <p>
          <button type="button" onClick={() => this.setState({ error: null, at: null })}>
            Try again
          </button>{" "}
          <a href={address("fleet")}>Go to the fleet without filters</a>
        </p>
      </section>
    );
  }
}
