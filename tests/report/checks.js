// Prints the results of checks as lines that `run` counts, and reads a run's folder.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

// A check passes if there are no problems; otherwise the first few are the reason.
export function check(name, problems) {
	if (problems.length === 0) {
		console.log(`ok - ${name}`);
		return;
	}
	const more = problems.length > 3 ? ` and ${problems.length - 3} more` : "";
	console.log(`not ok - ${name}: ${problems.slice(0, 3).join("; ")}${more}`.replaceAll("\n", " | "));
	process.exitCode = 1;
}

export function readRun(folder) {
	return JSON.parse(readFileSync(join(folder, "run.json"), "utf8"));
}

export function nameOf(folder) {
	return basename(folder);
}

// Every script takes at least one file or folder.
export function targets() {
	const all = process.argv.slice(2);
	if (all.length === 0)
		throw new Error(`${basename(process.argv[1])}: nothing to check`);
	return all;
}
