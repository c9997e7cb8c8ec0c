// Runs `performance_test report` over recorded runs and over damaged ones, and checks its exit status, messages and
// files. Usage: command.js FOLDER... The copies stay in $REPORT_WORK, with their reports, for the scripts that follow.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { check, nameOf, readRun, targets } from "./checks.js";
import { damaged, either, refused, shown } from "./damage.js";

const program = resolve(process.env.RAMPART_BIN ?? ".", "performance_test");
const work = resolve(process.env.REPORT_WORK ?? "build/report-tests");
const limit_s = 120;

function report(...args) {
	return new Promise((done) => {
		const child = spawn(program, ["report", ...args],
			{ stdio: ["ignore", "pipe", "pipe"], timeout: limit_s * 1000 });
		const said = { out: "", err: "" };

		child.stdout.setEncoding("utf8").on("data", (text) => (said.out += text));
		child.stderr.setEncoding("utf8").on("data", (text) => (said.err += text));
		child.on("error", (e) => done({ status: e.message, ...said }));
		child.on("close", (status, signal) => done({ status: status ?? signal, ...said }));
	});
}

function isLine(text) {
	return /^[^\n]{10,}\n$/.test(text);
}

// True if the text has characters that control a terminal or change the order of its letters.
function hasControls(text) {
	return /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(text);
}

function tables(folder) {
	const path = join(folder, "tables");
	return existsSync(path) ? readdirSync(path).filter((f) => f.endsWith(".csv")) : [];
}

function* notWritten(folder) {
	for (const name of ["report.html", "report.md"])
		if (!existsSync(join(folder, name)) || readFileSync(join(folder, name)).length < 200)
			yield `no ${name}`;
	if (tables(folder).length === 0)
		yield "no tables";
}

function* unlikeStatus(result, ...wanted) {
	if (!wanted.includes(result.status))
		yield `exit status ${result.status}, not ${wanted.join(" or ")}: ${result.err.slice(0, 300)}`;
}

function* notAPage(result, folder) {
	yield* unlikeStatus(result, 0);
	yield* notWritten(folder);
	if (result.out.length < 200)
		yield `said only '${result.out}'`;
	if (hasControls(result.out) || hasControls(result.err))
		yield "control characters reach the terminal";
}

function* notRefused(result, folder, file) {
	yield* unlikeStatus(result, 3);
	if (!isLine(result.err) || !result.err.includes(file) || hasControls(result.err.trimEnd()))
		yield `stderr is not one line that names ${file}: '${result.err.slice(0, 300)}'`;
	if (result.out !== "")
		yield "there is something on stdout";
	if (existsSync(join(folder, "report.html")))
		yield "a page was written";
}

async function aGoodRun(source) {
	const name = nameOf(source);
	const folder = join(work, "good", name);
	const before = readFileSync(join(source, "run.json"), "utf8");

	cpSync(source, folder, { recursive: true });
	const result = await report(folder);
	check(`${name}: report, its files and nothing on stderr`,
		[...notAPage(result, folder), ...(result.err === "" ? [] : [`stderr '${result.err}'`])]);
	check(`${name}: run.json stays what it was`,
		readFileSync(join(folder, "run.json"), "utf8") === before ? [] : ["it was changed"]);
}

async function anEmptyRun(source) {
	const folder = join(work, "empty", nameOf(source));

	cpSync(source, folder, { recursive: true });
	check(`${nameOf(source)}: a folder without a run`, [...notRefused(await report(folder), folder, "run.json")]);
}

// Rows whose number of cells differs from the rest of their table: an unescaped bar would have split them.
function* oddRows(markdown) {
	let cells = 0;

	for (const line of markdown.split("\n")) {
		const n = line.startsWith("|") ? line.replaceAll("\\|", "").split("|").length : 0;
		if (n > 0 && cells > 0 && n !== cells && line !== "| nothing |")
			yield line;
		cells = n;
	}
}

async function formats(folder) {
	const [html, markdown, text, plain] = [await report(folder, "--format", "html"),
		await report(folder, "--format", "markdown"), await report(folder, "--format", "text"), await report(folder)];
	const same = (result, file) => [...unlikeStatus(result, 0), ...notWritten(folder),
		...(existsSync(join(folder, file)) && result.out === readFileSync(join(folder, file), "utf8") ? [] :
			[`stdout is not ${file}`])];

	check("--format html: the page is printed", same(html, "report.html"));
	check("--format markdown: report.md is printed", same(markdown, "report.md"));
	check("--format text is the default", text.out === plain.out ? [] : ["they differ"]);
	check("text: no markup, and no line that ends with a space", /<details>|^\| |[*][*]| $/m.test(text.out) ? [text.out] : []);
	check("markdown: the rows of a table have as many cells", [...oddRows(markdown.out)]);
}

async function elsewhere(source) {
	const folder = join(work, "elsewhere");
	const output = join(work, "made", "of two");

	cpSync(source, folder, { recursive: true });
	const result = await report(folder, "--output", output);
	check("--output: the files are there", [...notAPage(result, output)]);
	check("--output: and not in the run's folder",
		readdirSync(folder).filter((f) => f.startsWith("report") || f === "tables"));
	const nowhere = await report(folder, "--output", join(folder, "run.json", "x"));
	check("--output where nothing can be written", [...unlikeStatus(nowhere, 3),
		...(nowhere.err.includes("run.json/x") ? [] : [`stderr '${nowhere.err}'`])]);
}

async function usage(folder) {
	const wrong = [[], ["--nonsense", folder], [folder, "--format", "poem"], [folder, "--format"], [folder, folder],
		[folder, "--headroom", "100"], [folder, "--headroom", "-1"], [folder, "--growth", "x"],
		[folder, "--plan", "0"], [folder, "--plan", "10,,20"], [folder, "--min-effect", "nan"], [folder, "--baseline"]];

	for (const args of wrong) {
		const result = await report(...args);
		check(`wrong use: ${args.map((a) => (a === folder ? "DIR" : a)).join(" ") || "nothing"}`,
			[...unlikeStatus(result, 2), ...(isLine(result.err) ? [] : [`stderr '${result.err}'`])]);
	}
	const help = await report("--help");
	check("--help names every option", [...unlikeStatus(help, 0),
		...["baseline", "format", "headroom", "growth", "plan", "min-effect", "any-environment", "output"]
			.filter((name) => !help.out.includes(`--${name}`))]);
	const nowhere = join(work, "there is no such folder");
	check("a folder that is not there", [...notRefused(await report(nowhere), nowhere, "there is no such folder")]);
	const planned = await report(folder, "--plan", "777,123456", "--headroom", "20", "--growth", "50");
	check("--plan: the numbers asked for are in the report", [...unlikeStatus(planned, 0),
		...["777", "123[,' \u2009\u202f]?456"].filter((n) => !new RegExp(n).test(planned.out))]);
}

// Makes a run that is `factor` times as fast; its repetitions differ by 1 %.
function remade(source, name, factor, change = () => {}) {
	const folder = join(work, "baselines", name);
	const run = readRun(source);

	const latency = { min: 1e5, mean: 5e5, max: 2e6, p50: 4e5, p90: 8e5, p95: 9e5, p99: 1e6 };

	for (const [i, step] of run.steps.entries()) {
		const speed = factor * (1 + (i % 3) / 100);
		step.throughput_msgs_per_s = 1000 * speed;
		for (const [p, ns] of Object.entries(latency))
			step.response_ns[p] = Math.round(ns / speed);
	}
	change(run);
	cpSync(source, folder, { recursive: true });
	writeFileSync(join(folder, "run.json"), JSON.stringify(run));
	return folder;
}

async function baselines(source) {
	const base = remade(source, "base", 1);
	const slow = remade(source, "slow", 0.5);
	const other = remade(source, "other", 1, (r) => {
		r.environment.clients.cpu_model = r.environment.server.cpu_model = "Another CPU";
	});
	const gives = async (name, status, regex, ...args) => {
		const result = await report(...args);
		check(name, [...unlikeStatus(result, status),
			...(regex.test(result.out + result.err) ? [] : [`says nothing of ${regex}`])]);
	};

	await gives("a baseline that is the same", 0, /base/, base, "--baseline", `before=${base}`);
	await gives("half as fast as its baseline: 1, a regression", 1, /regression/i, slow, "--baseline", base);
	await gives("twice as fast as its baseline", 0, /improve/i, base, "--baseline", slow);
	await gives("a regression below --min-effect", 0, /./, slow, "--baseline", base, "--min-effect", "300");
	await gives("two baselines", 1, /second/, slow, "--baseline", `first=${slow},second=${base}`);
	await gives("a baseline of another machine: 3, and what differs", 3, /cpu_model|CPU model/,
		base, "--baseline", other);
	await gives("--any-environment compares all the same", 0, /./, base, "--baseline", other, "--any-environment");
	await gives("a baseline that is not there", 3, /no such run/, base, "--baseline", join(work, "no such run"));
}

async function damagedRuns(source, kind, damages, judge) {
	const waiting = Object.entries(damages);
	const worker = async () => {
		for (let next = waiting.shift(); next; next = waiting.shift()) {
			const [name, damage] = next;
			const folder = join(work, kind, name.replaceAll(/[^a-z0-9]+/gi, "_"));
			damaged(source, folder, damage);
			check(`${kind}: ${name}`, [...judge(await report(folder), folder)]);
		}
	};

	await Promise.all([worker(), worker()]);
}

function* judgeEither(result, folder) {
	yield* result.status === 3 ? notRefused(result, folder, "run.json") : notAPage(result, folder);
}

rmSync(work, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
for (const source of targets())
	await (existsSync(join(source, "run.json")) ? aGoodRun(source) : anEmptyRun(source));
const complete = targets().find((t) => nameOf(t) === "complete");
await formats(join(work, "good", "complete"));
await elsewhere(complete);
await usage(join(work, "good", "complete"));
await baselines(targets().find((t) => nameOf(t) === "repeated"));
await damagedRuns(complete, "refused", refused, (r, folder) => notRefused(r, folder, "run.json"));
await damagedRuns(complete, "shown", shown, notAPage);
await damagedRuns(complete, "either", either, judgeEither);
