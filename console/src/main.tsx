// The entry point of the console.

import { render } from "preact";
import { Shell } from "./view/shell.tsx";

render(<Shell />, document.getElementById("console")!);
