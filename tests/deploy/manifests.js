// Checks the manifests of deploy/kubernetes, also as deploy/kubernetes-dra changes them, against the schemas of Kubernetes' API in the package kubernetes-models, and
// deploy/github/action.yml against the schema of actions. The validators of kubernetes-models know types, formats and
// required fields; its TypeScript interfaces know every field, so the compiler reports unknown ones. Then checks what no
// schema covers: that the manifests fit together.
//
// Usage: node tests/deploy/manifests.js SCRATCH    (from the top folder)

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { parse, parseAllDocuments } from "yaml";
import ts from "typescript";
import { validateAction } from "@action-validator/core";

const folder = "deploy/kubernetes", dra = "deploy/kubernetes-dra";
const scratch = process.argv[2];
let bad = 0;

function check(name, wrong) {
	if (wrong.length)
		bad++;
	console.log(wrong.length ? `not ok - ${name}: ${wrong.join("; ")}` : `ok - ${name}`);
}

// Kubernetes reads YAML 1.1, where 0440 is octal.
function read(file, within = folder) {
	return parseAllDocuments(readFileSync(`${within}/${file}`, "utf8"), { version: "1.1" }).map((document) => {
		if (document.errors.length)
			throw new Error(`${file}: ${document.errors[0].message}`);
		return { file, ...document.toJS() };
	});
}

function model(object) {
	return `kubernetes-models/${object.apiVersion}/${object.kind}`;
}

// The validator's complaints about the object.
async function invalid({ file, ...object }) {
	try {
		const { [object.kind]: Model } = await import(model(object));
		new Model(object).validate();
		return [];
	} catch (error) {
		return [error.message];
	}
}

// The compiler's complaints about each object, above all unknown fields.
function unknown(objects) {
	const lines = objects.map(({ file, ...object }, i) =>
		`import { I${object.kind} as I${i} } from "${model(object)}"; ` +
		`export const object${i}: I${i} = ${JSON.stringify(object)};`);
	const source = `${scratch}/manifests.ts`;
	mkdirSync(scratch, { recursive: true });
	writeFileSync(source, lines.join("\n") + "\n");
	const program = ts.createProgram([source], {
		noEmit: true, strict: true, types: [], skipLibCheck: true, module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2020,
		moduleResolution: ts.ModuleResolutionKind.Node10, baseUrl: process.cwd(),
		paths: { "*": ["tests/deploy/node_modules/*"] },
	});
	const found = objects.map(() => []);
	for (const { file, start, messageText } of ts.getPreEmitDiagnostics(program)) {
		const line = file ? file.getLineAndCharacterOfPosition(start).line : 0;
		found[line].push(ts.flattenDiagnosticMessageText(messageText, " "));
	}
	return found;
}

// All complaints about each object.
async function judge(objects) {
	const fields = unknown(objects);
	return Promise.all(objects.map(async (object, i) => [...await invalid(object), ...fields[i]]));
}

// What kustomize makes of an object with the patches (RFC 6902) of its kind.
function patched(object, { patches }) {
	const copy = structuredClone(object);
	for (const { target, patch } of patches)
		if (new RegExp(`^(${target.kind})$`).test(object.kind))
			for (const { op, path, value } of parse(patch)) {
				const keys = path.split("/").slice(1).map((key) => key.replaceAll("~1", "/"));
				const last = keys.pop();
				const at = keys.reduce((place, key) => place[key], copy);
				if (op !== "add" && at[last] === undefined)
					throw new Error(`${dra}: ${op} ${path}: there is nothing in ${object.kind}`);
				if (op === "remove")
					delete at[last];
				else
					at[last === "-" ? at.length : last] = value;
			}
	return copy;
}

// A copy with one change: `path` lists the keys, `value` is set there (undefined: removed).
function damaged(object, path, value) {
	const copy = structuredClone(object);
	const last = path.pop();
	const place = path.reduce((at, key) => at[key], copy);
	if (value === undefined)
		delete place[last];
	else
		place[last] = value;
	return copy;
}

const files = readdirSync(folder).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
const objects = files.flatMap((file) => read(file));
const [kustomization] = read("kustomization.yaml");
check("kustomization.yaml names every manifest", [...files, ...kustomization.resources]
	.filter((name) => !files.includes(name) || !kustomization.resources.includes(name)));

const find = (kind) => objects.find((object) => object.kind === kind);
const job = find("Job"), server = find("Deployment");
const container = ["spec", "template", "spec", "containers", 0];
const damage = [
	["a field that does not exist", damaged(job, [...container, "resorces"], {})],
	["a field of another object", damaged(job, ["spec", "replicas"], 3)],
	["a number as text", damaged(job, ["spec", "completions"], "3")],
	["a field that is missing", damaged(server, ["spec", "selector"], undefined)],
	["a word that is not allowed", damaged(server, [...container, "securityContext", "capabilities"], "ALL")],
];
const [changes] = read("kustomization.yaml", dra);
const changed = objects.map((object) => patched(object, changes)), claims = read("claim.yaml", dra);
damage.push(["a claim without a class", damaged(claims[1], ["spec", "spec", "devices", "requests", 0, "exactly"], {})]);
const good = [...objects, ...changed, ...claims];
const judged = await judge([...good, ...damage.map(([, object]) => object)]);
good.forEach((object, i) => check(`${i < objects.length ? folder : dra}/${object.file}: ${object.kind} ` +
	object.metadata.name, judged[i]));
damage.forEach(([what], i) => check(`refused: ${what}`, judged[good.length + i].length ? [] : ["accepted"]));

const option = (command, name) => command[command.indexOf(name) + 1];
const pods = objects.filter((object) => object.spec.template).map((object) => ({
	name: object.metadata.name, labels: object.spec.template.metadata.labels, spec: object.spec.template.spec,
	selector: object.spec.selector?.matchLabels,
}));
const { completions, parallelism } = job.spec;
const load = job.spec.template.spec.containers[0];
check("the Job's completions, parallelism and --hosts are one number",
	new Set([completions, parallelism, Number(option(load.command, "--hosts"))]).size === 1 ? [] : [load.command.join(" ")]);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
check("each Service has a pod", objects.filter((object) => object.kind === "Service")
	.filter((service) => !pods.some((pod) => same(pod.labels, service.spec.selector))).map((service) => service.metadata.name));
check("selectors are their pods' labels", pods.filter((pod) => pod.selector && !same(pod.selector, pod.labels))
	.map((pod) => pod.name));
check("what load hosts connect to are Services", [
	option(load.command, "--server"), new URL(option(load.command, "--cluster").replace("etcd:", "http:")).hostname,
].filter((name) => !objects.some((object) => object.kind === "Service" && object.metadata.name === name)));
const rdma = pods.filter((pod) => pod.spec.hostNetwork)
	.map((pod) => Object.entries(pod.spec.containers[0].resources.limits).filter(([name]) => name.startsWith("rdma/")));
check("server and load hosts ask for the same RDMA device", rdma.length === 2 && rdma[0].length && same(...rdma) ? [] :
	[JSON.stringify(rdma)]);
const claiming = ["Deployment", "Job"].map((kind) => changed.find((object) => object.kind === kind).spec.template.spec);
check(`${dra}: server and load hosts have an interface of their own`, claiming.filter((pod) => pod.hostNetwork ||
	pod.resourceClaims[0].resourceClaimTemplateName !== claims[1].metadata.name ||
	pod.containers[0].resources.claims[0].name !== pod.resourceClaims[0].name ||
	claims[1].spec.spec.devices.requests[0].exactly.deviceClassName !== claims[0].metadata.name)
	.map((pod) => JSON.stringify(pod.resourceClaims)));
check(`${dra}: the load hosts connect to the server's address`, same(option(claiming[1].containers[0].command, "--server"),
	claiming[0].containers[0].env[0].value) ? [] : ["see kustomization.yaml"]);
const { metadata: { annotations }, spec: { containers: [{ command }] } } = server.spec.template;
check("Prometheus is told the port of --metrics", annotations["prometheus.io/scrape"] === "true" &&
	option(command, "--metrics").endsWith(`:${annotations["prometheus.io/port"]}`) ? [] : [option(command, "--metrics")]);
for (const { name, spec } of pods) {
	const [{ command, env = [], volumeMounts, securityContext }] = spec.containers;
	const texts = command.join(" ");
	const missing = [...texts.matchAll(/\$\((\w+)\)/g)].map((match) => match[1])
		.filter((variable) => !env.some((entry) => entry.name === variable));
	check(`${name}: variables of its command are set`, missing);
	check(`${name}: its volumes are there`, volumeMounts.map((mount) => mount.name)
		.filter((volume) => !spec.volumes.some((entry) => entry.name === volume)));
	check(`${name}: not root, and no more rights than that`, spec.securityContext.runAsNonRoot &&
		securityContext.allowPrivilegeEscalation === false && securityContext.capabilities.drop.includes("ALL") ? [] :
		["see securityContext"]);
	// etcd's options are not in rampart's documentation.
	const known = readFileSync("docs/options.md", "utf8");
	check(`${name}: options of its command are documented`, command[0] === "etcd" ? [] :
		command.filter((word) => /^--[a-z]/.test(word)).filter((word) => !known.includes(`\`${word}`)));
}
check("the image can be built from what it copies", [...readFileSync("deploy/Containerfile", "utf8")
	.matchAll(/^COPY (?!--from)(\S+)/gm)].map((match) => match[1]).filter((path) => !existsSync(path)));

const action = readFileSync("deploy/github/action.yml", "utf8");
const errors = (text) => validateAction(text).errors.map((error) => JSON.stringify(error));
check("action.yml: schema of actions", errors(action));
check("refused: an action with a step without a shell", errors(action.replace(/^ *shell: bash\n/m, "")).length ? [] : ["accepted"]);
const used = [...new Set([...action.matchAll(/inputs\.(\w+)/g)].map((match) => match[1]))].sort();
const declared = Object.keys(parseAllDocuments(action)[0].toJS().inputs).sort();
check("action.yml declares the inputs that it uses, and no other", same(used, declared) ? [] : [used.join(), declared.join()]);
process.exit(bad ? 1 : 0);
