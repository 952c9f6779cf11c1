// The examples of docs/integrations.md: short, compiled in strict mode, and run.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import { packageFolder as folder, Server, skip } from "../../test/server.js";

const run = promisify(execFile);
const page = await readFile(join(folder, "../../../docs/integrations.md"), "utf8");
const examples = [...page.matchAll(/^## ([^\n]+)\n+(?:(?!## |```)[^\n]*\n)*^```ts\n(.*?)^```\n+^```text\n(.*?)^```/gms)];

describe("the examples of the integrations", { skip, timeout: 150_000 }, () => {
  let server: Server;
  const built = join(folder, "build", "examples");

  before(async () => {
    server = await Server.start("--embedder", "none");
    await mkdir(built, { recursive: true });
    for (const [index, [, , code]] of examples.entries()) {
      await writeFile(join(built, `${index}.ts`), moved(code!, index));
    }
    const compilerOptions = { rootDir: ".", outDir: "." };
    const config = { extends: "../../tsconfig.test.json", compilerOptions, include: ["*.ts"] };
    await writeFile(join(built, "tsconfig.json"), JSON.stringify(config));
    const compiler = join(folder, "..", "node_modules", "typescript", "bin", "tsc");
    await run(process.execPath, [compiler, "-p", built]).catch((error: { stdout: string }) => assert.fail(error.stdout));
  });

  after(async () => {
    await server.remove();
  });

  function moved(code: string, index: number): string {
    assert.ok(code.includes("127.0.0.1:50051") && code.includes('"ada"'));
    return code.replace("127.0.0.1:50051", server.address).replace('"ada"', `"example-${index}"`);
  }

  test("there are three", () => {
    assert.equal(examples.length, 3);
  });

  for (const [index, [, title, code, printed]] of examples.entries()) {
    test(`${title} prints what the page says`, async () => {
      assert.ok(code!.trimEnd().split("\n").length <= 25);
      const { stdout } = await run(process.execPath, [join(built, `${index}.js`)], { cwd: built });
      assert.equal(stdout, printed);
    });
  }
});
