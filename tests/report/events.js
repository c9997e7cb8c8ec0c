// Checks that every line of events.ndjson conforms to docs/results.md, that times rise, and that the last line is the
// end in run.json. Usage: events.js FOLDER...
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { check, nameOf, readRun, targets } from "./checks.js";

const count = (v) => Number.isInteger(v) && v >= 0;
const amount = (v) => typeof v === "number" && v >= 0;
const text = (v) => typeof v === "string" && v.length > 0;
const orNull = (is) => (v) => v === null || is(v);

const fields = {
	phase: { phase: text },
	step_start: { clients: count, repetition: count, message_bytes: count },
	connected: { clients: count, connected: count, failed: count },
	interval: { clients: count, messages_per_s: amount, p99_ns: orNull(amount), connected: count },
	sample: {
		clients: count, phase: text, connected: count, connecting: count, failed: count, connects: count,
		messages: count,
	},
	step_end: { clients: count, held: count, failed: count, dropped: count },
	run_end: { stop_reason: text, exit_status: count },
};

function* unlike(event) {
	const { t, event: name, ...rest } = event;

	if (!amount(t) || !Object.hasOwn(fields, name)) {
		yield `'${JSON.stringify(event)}'`;
		return;
	}
	for (const [key, is] of Object.entries(fields[name]))
		if (!Object.hasOwn(rest, key) || !is(rest[key]))
			yield `${name} at ${t}: ${key} is ${rest[key]}`;
	for (const key of Object.keys(rest).filter((k) => !Object.hasOwn(fields[name], k)))
		yield `${name} at ${t}: ${key} is not documented`;
}

function* problems(events, run) {
	const last = events.at(-1);
	let before = { t: 0 };
	let sample = { connects: 0, messages: 0 };	// of the step

	for (const event of events) {
		yield* unlike(event);
		if (event.t < before.t)
			yield `${event.t} after ${before.t}`;
		before = event;
		if (event.event === "step_start")
			sample = { connects: 0, messages: 0 };
		if (event.event !== "sample")
			continue;
		if (event.connects < sample.connects || event.messages < sample.messages)
			yield `sample at ${event.t} counts back`;
		sample = event;
	}
	if (events.filter((e) => e.event === "step_end").length !== run.steps.length)
		yield `not a step_end for each of ${run.steps.length} steps`;
	if (last.event !== "run_end" || last.stop_reason !== run.run.stop_reason ||
		last.exit_status !== run.run.exit_status)
		yield `ends with ${JSON.stringify(last)}`;
}

for (const folder of targets()) {
	const lines = readFileSync(join(folder, "events.ndjson"), "utf8").trimEnd().split("\n");
	const events = lines.map((l) => JSON.parse(l));
	check(`${nameOf(folder)}: events.ndjson is as documented`, [...problems(events, readRun(folder))]);
}
