// Checks that files obey RFC 4180: rows end with CRLF or all with LF, all have as many cells as the first, quotes only
// surround whole cells and are doubled within; UTF-8, and numbers in columns of numbers. Usage: csv.js FILE...
import { readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { check, targets } from "./checks.js";

// Throws if the text is not well-formed. Each cell must match where the last one ended.
export function parse(text) {
	const cell = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|$)/y;
	const rows = [];
	let row = [];

	while (cell.lastIndex < text.length || row.length > 0) {
		const at = cell.lastIndex;
		const match = cell.exec(text);
		if (!match)
			throw new Error(`no cell at byte ${at}: ${JSON.stringify(text.slice(at, at + 30))}`);
		row.push(match[1].startsWith('"') ? match[1].slice(1, -1).replaceAll('""', '"') : match[1]);
		if (match[2] === ",")
			continue;
		if (match[2] === "")
			throw new Error("the last row does not end");
		rows.push({ cells: row, end: match[2] });
		row = [];
	}
	return rows;
}

function* problems(path) {
	const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));
	const rows = parse(text);
	const width = rows[0]?.cells.length;

	if (rows.length < 2)
		yield "no rows";
	if (new Set(rows.map((r) => r.end)).size > 1)
		yield "rows end in more than one way";
	for (const [i, { cells }] of rows.entries()) {
		if (cells.length !== width)
			yield `row ${i + 1} has ${cells.length} cells, not ${width}`;
		if (cells.some((c) => /^[-+]?(nan|inf|infinity)$/i.test(c)))
			yield `row ${i + 1} has a number that is none`;
	}
	if (rows[0]?.cells.some((c) => c === "") || new Set(rows[0]?.cells).size !== width)
		yield `titles ${rows[0]?.cells}`;
}

for (const path of targets()) {
	let found;
	try {
		found = [...problems(path)];
	} catch (e) {
		found = [e.message];
	}
	check(`${basename(dirname(dirname(path)))}: tables/${basename(path)} is well-formed`, found);
}
