// The corpus' peer of this client: `node test/peer.js ADDRESS` of a build. The protocol is described in
// tests/vectors/README.md: a line of JSON for each call comes in, a line of JSON for each answer goes out.

import { MemoryClient } from "../src/index.js";
import type { Call } from "./peer-calls.js";
import { answer } from "./peer-calls.js";

/** Yields the lines of a stream, however long they are. */
async function* linesOf(stream: NodeJS.ReadStream): AsyncGenerator<string> {
  let pieces: string[] = [];
  for await (const chunk of stream.setEncoding("utf8")) {
    const [head = "", ...lines] = (chunk as string).split("\n");
    pieces.push(head);
    for (const line of lines) {
      yield pieces.join("");
      pieces = [line];
    }
  }
}

const client = new MemoryClient(process.argv[2]);
for await (const line of linesOf(process.stdin)) {
  const given = JSON.parse(line) as Call;
  process.stdout.write(`${JSON.stringify(await answer(client, given))}\n`);
}
client.close();
