// Checks that report.html can be read: from disk alone, narrow and wide, light and dark, on paper, with all its
// sections and charts. Also checks itself, with defects put into one page. Usage: page.js FOLDER...; each has a
// report.html. REPORT_SHOTS=DIR leaves screenshots there, for a person.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { check, nameOf, targets } from "./checks.js";
import { hostile } from "./damage.js";
import { inspect } from "./inspect.js";

const shots = process.env.REPORT_SHOTS;
const views = [
	{ width: 360, height: 740, colorScheme: "light" },
	{ width: 360, height: 740, colorScheme: "dark" },
	{ width: 1280, height: 900, colorScheme: "light" },
	{ width: 1280, height: 900, colorScheme: "dark" },
];
const { sections: usual, sections_of, charts } = JSON.parse(readFileSync(new URL("expected.json", import.meta.url), "utf8"));

function browserPath() {
	const folders = ["/usr/bin", ...(process.env.PATH ?? "").split(delimiter)];
	const paths = ["chromium", "chromium-browser"].flatMap((name) => folders.map((folder) => join(folder, name)));
	const found = paths.find((path) => existsSync(path));

	if (!found)
		throw new Error("no chromium: scripts/install-deps --tests");
	return found;
}

// Opens the page and records forbidden actions.
async function open(browser, path) {
	const context = await browser.newContext();
	const page = await context.newPage();
	const url = pathToFileURL(path).href;
	const noise = [];

	await context.route("**/*", (route) => (route.request().url() === url ? route.continue() : route.abort()));
	page.on("request", (r) => r.url() !== url && noise.push(`request for ${r.url()}`));
	page.on("console", (m) => noise.push(`console: ${m.text()}`));
	page.on("pageerror", (e) => noise.push(`error: ${e.message}`));
	page.on("dialog", (d) => noise.push(`dialog: ${d.message()}`) && d.dismiss());
	page.on("popup", () => noise.push("a window opened"));
	await page.goto(url, { waitUntil: "load" });
	return { context, page, noise };
}

function* badLinks(path, links) {
	const base = pathToFileURL(path);

	for (const href of links) {
		const target = new URL(href, base);
		if (target.protocol !== "file:" || target.search !== "")
			yield `link to ${href}`;
		else if (!existsSync(fileURLToPath(target.href.replace(/#.*/, ""))))
			yield `link to ${href}, which is not there`;
		else if (!fileURLToPath(target.href.replace(/#.*/, "")).startsWith(dirname(path)))
			yield `link out of the folder: ${href}`;
	}
}

function* missing(name, found) {
	const sections = sections_of[name] ?? usual;

	for (const [i, id] of sections.entries()) {
		const at = found.sections[i];
		if (at?.id !== id || !new RegExp(`^${i + 1} \\S`).test(at.heading))
			yield `section ${i + 1} is ${JSON.stringify(at)}, not '${id}'`;
	}
	if (found.sections.length !== sections.length)
		yield `${found.sections.length} sections`;
	for (const id of charts[name] ?? [])
		if (!found.charts.includes(id))
			yield `no chart '${id}' among ${found.charts}`;
}

const openDetails = (open) => document.querySelectorAll("details").forEach((d) => (d.open = open));

// Everything wrong with a page in one view, by topic.
async function look({ page, noise }, path, view, name) {
	const { width, height, colorScheme } = view;

	await page.setViewportSize({ width, height });
	await page.emulateMedia({ colorScheme });
	await page.evaluate(openDetails, false);
	const closed = await page.evaluate(inspect);
	if (shots)
		await page.screenshot({ fullPage: true, path: join(shots, `${name.replaceAll(" ", "-")}.png`) });
	await page.evaluate(openDetails, true);
	const opened = await page.evaluate(inspect);
	const both = (topic) => [...new Set([...closed.problems[topic], ...opened.problems[topic]])];
	const pdf = await page.pdf({ printBackground: true });
	return {
		found: opened,
		problems: {
			quiet: noise.splice(0),
			layout: both("layout"),
			texts: both("texts"),
			contrast: both("contrast"),
			structure: [...both("structure"), ...badLinks(path, opened.links)],
			drawn: both("drawn"),
			printed: pdf.subarray(0, 5).toString() === "%PDF-" && pdf.length > 10000 ? [] :
				[`${pdf.length} bytes`],
		},
	};
}

const topics = {
	quiet: "nothing but the file is asked for, nothing is said, no script",
	layout: "everything has room",
	texts: "no text of a chart covers another",
	contrast: "text can be told from its background",
	structure: "ids, anchors, links, headings and names",
	drawn: "charts are drawn",
	printed: "it prints",
};

async function checkPage(browser, folder) {
	const name = nameOf(folder);
	const path = resolve(folder, "report.html");

	if (!existsSync(path) || statSync(path).size === 0) {
		check(`${name}: there is a page`, ["no report.html"]);
		return;
	}
	const opened = await open(browser, path);
	for (const view of views) {
		const label = `${name} ${view.width}x${view.height} ${view.colorScheme}`;
		const { found, problems } = await look(opened, path, view, label);

		for (const [topic, what] of Object.entries(topics))
			check(`${label}: ${what}`, problems[topic]);
		if (view === views[0])
			check(`${name}: its sections and charts`, [...missing(name, found)]);
		if (view === views[0] && name === "hostile_texts")
			check(`${name}: a text is shown as it is`,
				found.text.includes(hostile.slice(0, 25)) ? [] : ["not found"]);
	}
	await opened.context.close();
}

// Each defect must be reported under its topic.
const defects = {
	quiet: '<img src="picture.png"><script>console.log("x")</script>',
	layout: '<p style="width: 3000px">wide</p>',
	texts: '<svg width="100" height="100"><text y="20">one</text><text y="22">two</text></svg>',
	contrast: '<p style="color: #888; background: #777">pale</p>',
	structure: '<p id="twice"></p><p id="twice"></p><a href="#nowhere">x</a>',
	drawn: '<figure id="empty"><svg width="100" height="100"></svg></figure>',
};

async function checkDefects(browser, folder) {
	// Drop the policy too, because it would keep a script from running.
	const html = readFileSync(join(folder, "report.html"), "utf8")
		.replace(/<meta[^>]*Content-Security-Policy[^>]*>/i, "");
	const path = resolve(folder, "defect.html");

	for (const [topic, defect] of Object.entries(defects)) {
		writeFileSync(path, html.replace("</body>", `${defect}</body>`));
		const opened = await open(browser, path);
		const { problems } = await look(opened, path, views[0], `defect ${topic}`);
		await opened.context.close();
		check(`a page with a defect: ${topic}`, problems[topic].length > 0 ? [] : [`not found: ${defect}`]);
	}
}

if (shots)
	mkdirSync(shots, { recursive: true });
const browser = await chromium.launch({
	executablePath: browserPath(),
	args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync"],
});
try {
	for (const folder of targets())
		await checkPage(browser, folder);
	if (existsSync(join(targets()[0], "report.html")))
		await checkDefects(browser, targets()[0]);
} finally {
	await browser.close();
}
