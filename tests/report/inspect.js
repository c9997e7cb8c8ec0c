// Runs within the page, so it is self-contained. Returns what is wrong with the page, by topic, and what it contains.
export function inspect() {
	const problems = { layout: [], texts: [], contrast: [], structure: [], drawn: [] };
	const root = document.documentElement;
	const all = [...document.body.querySelectorAll("*")];
	const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
		.getContext("2d", { willReadFrequently: true });

	function describe(e) {
		const text = (e.textContent ?? "").trim().slice(0, 30);
		return `<${e.localName}${e.id ? ` id=${e.id}` : ""} class="${e.getAttribute("class") ?? ""}"> '${text}'`;
	}

	function isShown(e) {
		return e.checkVisibility({ visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true });
	}

	function isScrolled(e) {
		for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
			if (/auto|scroll/.test(getComputedStyle(p).overflowX))
				return true;
		return false;
	}

	function checkLayout() {
		if (root.scrollWidth > root.clientWidth)
			problems.layout.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
		for (const e of all) {
			const r = e.getBoundingClientRect();
			const outside = r.left < -1 || r.right > root.clientWidth + 1;
			// Elements for screen readers only are one pixel large.
			if (outside && r.width > 1 && !e.ownerSVGElement && isShown(e) && !isScrolled(e))
				problems.layout.push(`${describe(e)} from ${Math.round(r.left)} to ${Math.round(r.right)}`);
		}
		for (const e of document.querySelectorAll("svg text")) {
			const r = e.getBoundingClientRect();
			const box = e.ownerSVGElement.getBoundingClientRect();
			if (isShown(e) && r.width > 0 && (r.left < box.left - 2 || r.right > box.right + 2 ||
				r.top < box.top - 2 || r.bottom > box.bottom + 2))
				problems.layout.push(`${describe(e)} is cut off`);
		}
	}

	// Texts of a chart, except rotated ones, whose boxes are larger than the text.
	function checkTexts() {
		for (const svg of document.querySelectorAll("svg")) {
			const texts = [...svg.querySelectorAll("text")].filter((e) => isShown(e) && !e.closest("g[transform]"))
				.map((e) => ({ e, r: e.getBoundingClientRect() }));
			for (const [i, a] of texts.entries())
				for (const b of texts.slice(i + 1))
					if (Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left) > 1 &&
						Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top) > 1)
						problems.texts.push(`${describe(a.e)} and ${describe(b.e)}`);
		}
	}

	// Any CSS colour as [r, g, b, alpha].
	function rgba(colour) {
		pixel.clearRect(0, 0, 1, 1);
		pixel.fillStyle = colour;
		pixel.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
		return [r, g, b, a / 255];
	}

	function over(top, bottom) {
		return [0, 1, 2].map((i) => top[i] * top[3] + bottom[i] * (1 - top[3])).concat(1);
	}

	// The colour behind everything: white, or dark if the page supports it.
	function canvasColour() {
		const probe = document.body.appendChild(document.createElement("div"));
		probe.style.backgroundColor = "Canvas";
		const colour = rgba(getComputedStyle(probe).backgroundColor);
		probe.remove();
		return colour;
	}

	function background(e) {
		const layers = [];
		for (let p = e; p; p = p.parentElement)
			layers.push(rgba(getComputedStyle(p).backgroundColor));
		return layers.reverse().reduce((below, layer) => over(layer, below), canvas);
	}

	// WCAG 2.2, relative luminance and contrast ratio.
	function luminance(colour) {
		const [r, g, b] = colour.map((v) => v / 255)
			.map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	}

	function checkContrast() {
		const seen = new Set();
		for (const e of all) {
			const isText = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim() !== "");
			if (!isText || /^(title|desc|style|script)$/.test(e.localName) || !isShown(e))
				continue;
			const style = getComputedStyle(e);
			const below = background(e.ownerSVGElement ?? e);
			const above = over(rgba(e.ownerSVGElement ? style.fill : style.color), below);
			const [light, dark] = [luminance(above), luminance(below)].sort((a, b) => b - a);
			const ratio = (light + 0.05) / (dark + 0.05);
			const key = `${above} on ${below}`;
			if (ratio < 4.5 && !seen.has(key))
				problems.contrast.push(`${describe(e)} has ${ratio.toFixed(2)}`);
			seen.add(key);
		}
	}

	function checkStructure() {
		const ids = all.map((e) => e.id).filter((id) => id);
		const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((h) => Number(h.localName[1]));
		const note = (bad, text) => bad && problems.structure.push(text);

		for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i)))
			problems.structure.push(`id ${id} twice`);
		for (const e of document.querySelectorAll('[href^="#"]'))
			note(!document.getElementById(decodeURIComponent(e.getAttribute("href").slice(1))),
				`no anchor ${e.getAttribute("href")}`);
		for (const name of ["aria-labelledby", "aria-describedby", "for", "headers"])
			for (const e of document.querySelectorAll(`[${name}]`))
				for (const id of e.getAttribute(name).split(/\s+/))
					note(!document.getElementById(id), `${describe(e)}: no id ${id} for ${name}`);
		note(document.querySelector("script, iframe, object, embed, base, form, link[rel=stylesheet]"),
			"scripts or frames");
		note(all.some((e) => [...e.attributes].some((a) => /^on/i.test(a.name))), "an event handler");
		note(document.compatMode !== "CSS1Compat", "no doctype");
		note(!root.lang, "no language");
		note(document.title.trim() === "" || document.title === "owned", `title '${document.title}'`);
		note(!document.querySelector('meta[name="viewport"]'), "no viewport");
		note(levels.filter((l) => l === 1).length !== 1, "not one h1");
		note(levels.some((l, i) => i > 0 && l > levels[i - 1] + 1), `levels of headings ${levels}`);
		for (const e of document.querySelectorAll("table"))
			note(!e.querySelector("th") && isShown(e), `${describe(e)} without headings`);
	}

	function checkDrawn() {
		for (const figure of document.querySelectorAll("figure")) {
			const svg = figure.querySelector("svg");
			const box = svg?.getBoundingClientRect();
			const shapes = [...figure.querySelectorAll("path, polyline, polygon, rect, circle, line, use")].filter((s) => {
				const b = s.getBBox();
				return !s.closest("defs, clipPath, pattern") && (b.width > 0 || b.height > 0);
			});
			if (!svg || box.width < 100 || box.height < 80 || shapes.length < 3)
				problems.drawn.push(`${describe(figure)}: ${box?.width}x${box?.height}, ${shapes.length} shapes`);
			else if (!svg.querySelector("title") && !svg.getAttribute("aria-label"))
				problems.drawn.push(`${describe(figure)} has no name`);
		}
	}

	const canvas = canvasColour();
	checkLayout();
	checkTexts();
	checkContrast();
	checkStructure();
	checkDrawn();
	return {
		problems,
		sections: [...document.querySelectorAll("section")].map((s) =>
			({ id: s.id, heading: s.querySelector("h2")?.textContent.trim().replace(/\s+/g, " ") ?? "" })),
		charts: [...document.querySelectorAll("figure")].filter((f) => f.querySelector("svg")).map((f) => f.id),
		links: [...document.querySelectorAll("a[href]")].map((a) => a.getAttribute("href")),
		text: document.body.textContent,
	};
}
