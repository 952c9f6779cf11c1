// Values that the types of the client forbid, or that fit them and cannot be sent, made from the types themselves.

import { join } from "node:path";

import ts from "typescript";

import { packageFolder } from "./server.js";

/** A parameter of a method. */
export interface Parameter {
  readonly method: string;
  readonly name: string;
  /** A value for each parameter of the method that fits. */
  readonly fitting: readonly unknown[];
  readonly index: number;
  readonly isOptional: boolean;
  readonly type: ts.Type;
}

export const LONE = "caf\ud800";
const TIME = "2026-05-01T12:00:00Z";
const DEPTH_MAX = 4;

/** Fields that only the server sets: the client ignores them in an item or an entry that it returned. */
const SET_BY_SERVER: ReadonlySet<string> = new Set(["version", "revision", "updateTime", "degraded", "sizeBytes"]);

const source = join(packageFolder, "src", "index.ts");
const program = ts.createProgram([source], {
  strict: true,
  exactOptionalPropertyTypes: true,
  module: ts.ModuleKind.NodeNext,
  target: ts.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts", "lib.es2024.string.d.ts", "lib.esnext.disposable.d.ts"],
  types: ["node"],
  skipLibCheck: true,
});
const checker = program.getTypeChecker();

/** Yields the parameters of all methods of the client. */
export function* parameters(): Generator<Parameter> {
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(source)!)!);
  const client = exported.find(({ name }) => name === "MemoryClient")!;
  for (const method of checker.getDeclaredTypeOfSymbol(client).getProperties()) {
    const overloads = checker.getTypeOfSymbol(method).getCallSignatures();
    const signature = overloads.at(-1);
    if (signature === undefined || /^(__@|namespace$|close$)/.test(method.name)) {
      continue;
    }
    const types = signature.parameters.map((parameter) => checker.getTypeOfSymbol(parameter));
    const fitting = types.map(valid);
    for (const [index, parameter] of signature.parameters.entries()) {
      const isOptional = overloads.some(({ parameters }) => isWithDefault(parameters[index]));
      yield { method: method.name, name: parameter.name, fitting, index, isOptional, type: types[index]! };
    }
  }
}

function isWithDefault(parameter: ts.Symbol | undefined): boolean {
  const declaration = parameter?.valueDeclaration as ts.ParameterDeclaration | undefined;
  return (declaration?.questionToken ?? declaration?.initializer) !== undefined;
}

const has = (type: ts.Type, flags: ts.TypeFlags) => (type.flags & flags) !== 0;
const isCallable = (type: ts.Type) => type.getCallSignatures().length > 0;
const named = (type: ts.Type) => (type.aliasSymbol ?? type.getSymbol())?.name ?? "";

function membersOf(type: ts.Type): readonly ts.Type[] {
  const members = type.isUnion() ? type.types : [type];
  return members.filter((member) => !has(member, ts.TypeFlags.Undefined));
}

/** Returns the type of the elements of a list of any kind. Undefined: it is no list. */
function elementOf(type: ts.Type): ts.Type | undefined {
  const isList = /^(Array|ReadonlyArray|Iterable|AsyncIterable|ArrayLike)$/.test(type.getSymbol()?.name ?? "");
  return isList ? checker.getTypeArguments(type as ts.TypeReference)[0] : undefined;
}

/** Returns a value that fits a type. */
function valid(type: ts.Type): unknown {
  const members = membersOf(type);
  const [member] = members;
  if (member === undefined || members.some((each) => named(each) === "Date")) {
    return member && TIME;
  }
  if (member.isStringLiteral()) {
    return member.value;
  }
  if (has(member, ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.BooleanLike)) {
    return has(member, ts.TypeFlags.StringLike) ? "x" : has(member, ts.TypeFlags.NumberLike) ? 1 : true;
  }
  return elementOf(member) ? [] : whole(member, {});
}

/** Returns an object with its required properties and the given ones. */
function whole(type: ts.Type, given: object): object {
  const required = type.getProperties().filter(({ flags }) => (flags & ts.SymbolFlags.Optional) === 0);
  const values = required.map((property) => [property.name, valid(checker.getTypeOfSymbol(property))]);
  return { ...Object.fromEntries(values), ...given };
}

/** Yields values of a type that cannot be sent. */
export function* invalid(type: ts.Type, depth = 0): Generator<unknown> {
  const members = membersOf(type);
  const names = members.map(named);
  const some = (flags: ts.TypeFlags) => members.some((member) => has(member, flags));
  if (depth > DEPTH_MAX || some(ts.TypeFlags.Any | ts.TypeFlags.Unknown)) {
    return;
  }
  yield* [Symbol("x"), 1n];
  if (!members.some(isCallable)) {
    yield () => 1;
  }
  if (!some(ts.TypeFlags.Null)) {
    yield null;
  }
  if (!some(ts.TypeFlags.NumberLike)) {
    yield 5;
  }
  if (!some(ts.TypeFlags.BooleanLike)) {
    yield true;
  }
  if (members.some((member) => has(member, ts.TypeFlags.String))) {
    yield names.includes("Date") ? "2026-05-01" : LONE;
  } else {
    yield "no such value";
  }
  const isJson = names.includes("JsonObject");
  if (!isJson && !members.some(elementOf)) {
    yield [];
  }
  yield new Map([["a", "b"]]);
  for (const member of members) {
    yield* isJson ? invalidJson(some(ts.TypeFlags.String)) : invalidMembers(member, depth);
  }
}

function* invalidJson(isAny: boolean): Generator<unknown> {
  const texts = [LONE, { [LONE]: 1 }, [LONE]];
  const values = [...texts, [() => 1], { a: 2 ** 60 }, { a: NaN }, { a: 1n }, JSON.parse('{"__proto__": 1}')];
  yield* isAny ? values : values.map((value: unknown) => ({ a: value }));
}

function* invalidMembers(type: ts.Type, depth: number): Generator<unknown> {
  const element = elementOf(type);
  if (element) {
    for (const value of invalid(element, depth + 1)) {
      yield [valid(element), value];
    }
    return;
  }
  if (named(type) === "Date") {
    yield new Date(NaN);
  }
  if (!has(type, ts.TypeFlags.Object) || /^(Date|AbortSignal|Uint8Array)$/.test(named(type))) {
    return;
  }
  const entry = type.getStringIndexType();
  if (entry) {
    yield { [LONE]: valid(entry) };
    for (const value of invalid(entry, depth + 1)) {
      yield { k: value };
    }
  }
  for (const property of type.getProperties().filter(({ name }) => name !== "type" && !SET_BY_SERVER.has(name))) {
    for (const value of invalid(checker.getTypeOfSymbol(property), depth + 1)) {
      yield whole(type, { [property.name]: value });
    }
  }
}
