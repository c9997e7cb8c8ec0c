// Damages copies of a good run: files cut off, values of other types, hostile texts.
import {
	appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync,
} from "node:fs";
import { join } from "node:path";

// Tries to break out of elements, attributes, tables, Markdown and a terminal.
export const hostile = "</title></svg><script>document.title='owned'</script>" +
	"<img src=x onerror=\"document.title='owned'\">" +
	"'\"`|\\ \u001b[31m\u0007\r\n# & %s %n $(touch owned) `touch owned` {/Bold x}@^_ \u202eend";

function edited(change) {
	return (folder) => {
		const path = join(folder, "run.json");
		const run = JSON.parse(readFileSync(path, "utf8"));
		// A change edits the run in place, or returns a replacement.
		writeFileSync(path, JSON.stringify(change(run) ?? run));
	};
}

function text(change) {
	return (folder) => {
		const path = join(folder, "run.json");
		writeFileSync(path, change(readFileSync(path)));
	};
}

function eachFile(ending, change) {
	return (folder) => {
		for (const name of readdirSync(folder).filter((f) => f.endsWith(ending)))
			change(join(folder, name));
	};
}

function eachNumber(o, change) {
	for (const key of Object.keys(o))
		if (typeof o[key] === "number")
			o[key] = change(o[key], key);
		else if (o[key] !== null && typeof o[key] === "object")
			eachNumber(o[key], change);
}

// Keep the names that readers look up, because otherwise nothing would be shown.
const kept = /^(status|stop_reason|stage|code|result|workload|poll|arrival|operation|validity)$/;

export function eachText(o, value) {
	for (const key of Object.keys(o))
		if (typeof o[key] === "string" && !kept.test(key))
			o[key] = value;
		else if (o[key] !== null && typeof o[key] === "object" && key !== "validity")
			eachText(o[key], value);
}

function cut(share) {
	return (bytes) => bytes.subarray(0, Math.floor(bytes.length * share));
}

// Replacements for numbers, lists and objects.
const aliens = [null, true, -1, 1e308, Number.MAX_SAFE_INTEGER, "alien", "", [], {}, [[]], [null, 7, "x"], { x: {} }];

// Always the same sequence: a linear congruential generator (Numerical Recipes).
function* numbers(seed) {
	for (let state = seed; ; yield state / 2 ** 32)
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
}

// Replaces n values below the run.
function scattered(seed, n) {
	return edited((run) => {
		const random = numbers(seed);
		const next = (limit) => Math.floor(random.next().value * limit);

		for (let i = 0; i < n; i++) {
			let o = run;
			let key = Object.keys(run)[next(Object.keys(run).length)];
			while (Object.keys(o[key] ?? {}).length > 0 && typeof o[key] === "object" && next(6) > 0) {
				o = o[key];
				key = Object.keys(o)[next(Object.keys(o).length)];
			}
			o[key] = structuredClone(aliens[next(aliens.length)]);
		}
	});
}

// Damage that makes the report refuse the run.
export const refused = {
	"empty file": text(cut(0)),
	"cut after a byte": text((b) => b.subarray(0, 1)),
	"cut at a tenth": text(cut(0.1)),
	"cut at a half": text(cut(0.5)),
	"cut at nine tenths": text(cut(0.9)),
	"without the last brace": text((b) => b.subarray(0, b.lastIndexOf("}"))),
	"more after its end": text((b) => Buffer.concat([b, Buffer.from("}")])),
	"not UTF-8": text((b) =>
		Buffer.from(b.toString("latin1").replace("max_reached", "max\xff\xfereached"), "latin1")),
	"a zero byte": text((b) => Buffer.from(b.toString().replace("max_reached", "max\0reached"))),
	"binary": text(() => Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 151) % 256))),
	"nested deeply": text(() => "[".repeat(1e6)),
	"a number without end": text((b) =>
		b.toString().replace('"exit_status":1', `"exit_status":${"9".repeat(400)}`)),
	"a list": edited(() => []),
	"an empty object": edited(() => ({})),
	"a text": text(() => '"run"'),
	"a folder": (folder) => {
		rmSync(join(folder, "run.json"));
		mkdirSync(join(folder, "run.json"));
	},
	"a dangling link": (folder) => {
		rmSync(join(folder, "run.json"));
		symlinkSync("nowhere", join(folder, "run.json"));
	},
	"missing": (folder) => rmSync(join(folder, "run.json")),
	"a version to come": edited((r) => void (r.schema_version = 3)),
	"a version that is none": edited((r) => void (r.schema_version = "1")),
};

// Damage to a part of the run: the report must show the rest.
export const shown = {
	"hostile texts": edited((r) => eachText(r, hostile)),
	"long texts": edited((r) => eachText(r, "long ".repeat(400))),
	"no steps": edited((r) => void (r.steps = [])),
	"no analysis": edited((r) => void delete r.analysis),
	"no verdict": edited((r) => void delete r.verdict),
	"no environment": edited((r) => void (r.environment = null)),
	"nothing known of the server": edited((r) => {
		r.server_build = r.server_config = r.environment.server = null;
		for (const s of r.steps)
			s.server_before = s.server_after = s.server_stages_ns = s.server_connected = null;
	}),
	"logs cut off": eachFile(".hlog", (p) => writeFileSync(p, cut(0.8)(readFileSync(p)))),
	"logs of garbage": eachFile(".hlog", (p) => writeFileSync(p, "HISTFAAAAEV42pNpmSz\0,,,\n\n,0,0,!!!!\n")),
	"logs of another one's figures": eachFile(".hlog", (p) =>
		writeFileSync(p, readFileSync(p, "utf8").replace(/^0\.000,[^,]*,[^,]*,/m, "nan,-1e308,inf,"))),
	"no histograms": eachFile("", (p) => /\.h(log|grm)$/.test(p) && rmSync(p)),
	"histograms elsewhere": edited((r) => {
		for (const s of r.steps)
			s.histograms = { connect: "../../../../etc/passwd", response: "/etc/passwd", service: "%s\n" };
	}),
	"events torn": eachFile(".ndjson", (p) => writeFileSync(p, readFileSync(p).subarray(0, -9))),
	"events of garbage": eachFile(".ndjson", (p) =>
		appendFileSync(p, '\0\xff{{[[\n{"t":"x","event":7}\n[]\nnull\n{"t":1e308}')),
	"a long event": eachFile(".ndjson", (p) => appendFileSync(p, `{"t":1,"event":"${"x".repeat(5e6)}"}\n`)),
	"no events": eachFile(".ndjson", (p) => rmSync(p)),
};

// Damage after which the report may show the run or refuse it with a line, but nothing else.
export const either = {
	"nothing but nulls": edited((r) => {
		for (const key of Object.keys(r).filter((k) => k !== "schema_version"))
			r[key] = null;
	}),
	"steps that are none": edited((r) => void (r.steps = "many")),
	"steps of nothing": edited((r) => void (r.steps = [null, 7, "x", [], {}, ...r.steps])),
	"huge numbers": edited((r) => eachNumber(r, (v, key) => (key === "schema_version" ? v : 1e308))),
	"huge whole numbers": text((b) => b.toString().replace(/: (\d{2,})(?=[,\n])/g, ": 9223372036854775807")),
	"numbers below zero": edited((r) => eachNumber(r, (v, key) => (key === "schema_version" ? v : -v))),
	"nothing but zeros": edited((r) => eachNumber(r, (v, key) => (key === "schema_version" ? v : 0))),
	"thousands of steps": edited((r) => {
		const step = { ...r.steps[0], server_before: null, server_after: null };
		r.steps = Array.from({ length: 2000 }, (_, i) => ({ ...step, target_clients: i + 1, connected_held: i + 1 }));
	}),
	"steps all alike": edited((r) => void (r.steps = Array.from({ length: 20 }, () => r.steps[0]))),
	"steps in falling order": edited((r) => void r.steps.reverse()),
	...Object.fromEntries(Array.from({ length: 24 }, (_, i) =>
		[`scattered damage ${i + 1}`, scattered(i + 1, 1 + (i % 8) * 5)])),
};

// Makes a damaged copy of the run.
export function damaged(source, folder, damage) {
	cpSync(source, folder, { recursive: true });
	damage(folder);
}
