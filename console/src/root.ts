// Which service this is: the one that served the console.

/** The root of the service, which may be beneath a prefix. */
export const ROOT = new URL("..", document.baseURI);

/** Where the browser keeps something; services beneath other prefixes share its storage. */
export function keyOf(name: string): string {
  return `placement-${name} ${ROOT.pathname}`;
}
