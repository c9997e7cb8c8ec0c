// Checks that .hlog, .hgrm and run.json agree. HdrHistogram's own library decodes the log. Usage: hdr.js FOLDER...
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { HistogramLogReader } from "hdr-histogram-js";
import { check, nameOf, readRun, targets } from "./checks.js";

const percentiles = { p50: 50, p90: 90, p95: 95, p99: 99, p99_9: 99.9, p99_99: 99.99 };

// The step of a histogram file, and the distribution of the step that it is.
function owner(run, file) {
	const named = (s) => Object.entries(s.histograms ?? {}).find(([, name]) => name === file);
	const step = run.steps.find(named);
	const parts = /^step-(\d+)-(\d+)(?:-(\d+)B)?-(connect|response|service)$/.exec(file);

	if (step)
		return [step, named(step)[0]];
	if (!parts)
		return [undefined, undefined];
	const [, clients, repetition, bytes, which] = parts;
	return [run.steps.find((s) => s.target_clients === Number(clients) && s.repetition === Number(repetition) &&
		(bytes === undefined || s.message_bytes === Number(bytes))), which];
}

function latencyOf(step, which) {
	return { connect: step.connect_ns.total, response: step.response_ns, service: step.service_ns }[which];
}

function near(a, b, ratio) {
	return Math.abs(a - b) <= ratio * Math.max(Math.abs(a), Math.abs(b));
}

// The only interval of a log; also its line, for the columns that the library ignores.
function readLog(path) {
	const text = readFileSync(path, "utf8");
	const reader = new HistogramLogReader(text);
	const histogram = reader.nextIntervalHistogram();
	const [start, length, max] = text.trimEnd().split("\n").at(-1).split(",").map(Number);

	return { histogram, more: reader.nextIntervalHistogram() !== null, start, length, max_ms: max };
}

// A latency object has exact extremes, a histogram only their cells.
function* againstLatency(log, latency, length_s) {
	const h = log.histogram;
	const cell = (ns) => h.highestEquivalentValue(ns);

	if (log.more)
		yield "more than one interval";
	if (h.totalCount !== latency.count)
		yield `${h.totalCount} values, run.json has ${latency.count}`;
	if (cell(h.minNonZeroValue) !== cell(latency.min))
		yield `min ${h.minNonZeroValue}, run.json has ${latency.min}`;
	if (cell(h.maxValue) !== cell(latency.max))
		yield `max ${h.maxValue}, run.json has ${latency.max}`;
	if (!near(h.mean, latency.mean, 1e-3))
		yield `mean ${h.mean}, run.json has ${latency.mean}`;
	for (const [name, p] of Object.entries(percentiles))
		if (latency[name] !== null && h.getValueAtPercentile(p) !== cell(latency[name]))
			yield `${name} ${h.getValueAtPercentile(p)}, run.json has ${latency[name]}`;
	if (!near(log.max_ms, latency.max / 1e6, 1e-3) && Math.abs(log.max_ms - latency.max / 1e6) > 1e-3)
		yield `Interval_Max ${log.max_ms}, run.json has ${latency.max} ns`;
	if (log.start !== 0 || Math.abs(log.length - length_s) > 2e-3)
		yield `interval ${log.start} + ${log.length}, run.json has ${length_s}`;
}

// The percentile text: rows of [value in us, percentile, count up to there], and the summary below them.
function readDistribution(path) {
	const lines = readFileSync(path, "utf8").trimEnd().split("\n");
	const footer = lines.filter((l) => l.startsWith("#")).join(" ");
	const figure = (name) => Number(new RegExp(`${name}\\s*=\\s*([\\d.]+)`).exec(footer)?.[1]);

	return {
		header: lines[0].trim().split(/\s+/).join(" "),
		rows: lines.slice(1).filter((l) => l && !l.startsWith("#"))
			.map((l) => l.trim().split(/\s+/).map(Number)),
		mean: figure("Mean"), max: figure("Max"), count: figure("Total count"),
	};
}

function countUpTo(h, value) {
	let n = 0;

	for (let i = 0; i < h.countsArrayLength && h.valueFromIndex(i) <= value; i++)
		n += h.getCountAtIndex(i);
	return n;
}

function* againstDistribution(d, h) {
	let before = [0, 0, 0];
	const cell = (ns) => h.highestEquivalentValue(Math.round(ns));
	// The library returns a cell's lower bound at percentile 0, rampart its upper one.
	const at = (percentile) => cell(h.getValueAtPercentile(percentile * 100));

	if (d.header !== "Value Percentile TotalCount 1/(1-Percentile)")
		yield `header '${d.header}'`;
	if (d.count !== h.totalCount || d.rows.length === 0 || d.rows.at(-1)[2] !== h.totalCount)
		yield `${d.count} values in the end, the log has ${h.totalCount}`;
	if (cell(d.max * 1000) !== cell(h.maxValue))
		yield `Max ${d.max}, the log has ${h.maxValue} ns`;
	if (!near(d.mean * 1000, h.mean, 1e-3))
		yield `Mean ${d.mean}, the log has ${h.mean} ns`;
	if (d.rows.at(-1)?.[1] !== 1)
		yield "does not end at 1";
	for (const row of d.rows) {
		const [us, percentile, count, inverse] = row;
		const ns = cell(us * 1000);

		if (row.some(Number.isNaN) || row.some((v, i) => i < 3 && v < before[i]))
			yield `row ${row} does not rise from ${before}`;
		// The percentile has 12 digits, which at the edge of a rank may round to the next rank.
		if (ns !== at(percentile) && !near(count / h.totalCount, percentile, 1e-9))
			yield `${us} us at ${percentile}, the log has ${at(percentile)} ns`;
		if (countUpTo(h, ns) !== count)
			yield `${count} values up to ${us} us, the log has ${countUpTo(h, ns)}`;
		if (percentile < 1 && !near(inverse, 1 / (1 - percentile), 6e-3))
			yield `1/(1-${percentile}) is ${inverse}`;
		before = row;
	}
}

for (const folder of targets()) {
	const run = readRun(folder);
	const files = readdirSync(folder).filter((f) => f.endsWith(".hlog")).map((f) => f.slice(0, -".hlog".length));

	check(`${nameOf(folder)}: there are histograms`, files.length > 0 ? [] : ["none"]);
	for (const file of files) {
		const [step, which] = owner(run, file);
		const log = readLog(join(folder, `${file}.hlog`));
		const text = join(folder, `${file}.hgrm`);

		if (!step || !log.histogram || !existsSync(text)) {
			check(`${nameOf(folder)}: ${file}`, ["no step of that name, no interval in the log, or no .hgrm"]);
			continue;
		}
		const length_s = which === "connect" ? step.connect_wall_s : step.measured_s;
		check(`${nameOf(folder)}: ${file}.hlog agrees with run.json`,
			[...againstLatency(log, latencyOf(step, which), length_s)]);
		check(`${nameOf(folder)}: ${file}.hgrm agrees with the log`,
			[...againstDistribution(readDistribution(text), log.histogram)]);
	}
}
