// Is every run.json as docs/run.schema.json says, every suite.json as its schema does, and do the schemas find mistakes? Each file is damaged in every place: a field left out, a field nobody knows, a value of another type.
// Usage: schema.js FOLDER...
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";
import { check, nameOf, readRun, targets } from "./checks.js";

const schemas = new Ajv2020({ strictTypes: false, strictRequired: false });
for (const name of ["run", "suite", "suite-results"]) {
	const file = `${name}.schema.json`;
	schemas.addSchema(JSON.parse(readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8")), file);
}
const validate = schemas.getSchema("run.schema.json");

// Fields that may be missing: what older runs lack, and what there is only where it happened.
const optional = [
	/^config\.(slo|find_capacity|clients|judge|floor|iterations|warmup_iterations|rates_per_s|find_rate|max_steal_ratio)$/,
	/^steps\.\d+\.(started_s|ended_s|histograms|slo|probe|hard_failure)$/,
	/^config\.(transport|transport_fell_back|tcp|stripe_min_bytes)$/,
	/^server_config(\.\w+)*\.tcp$/,
	/^steps\.\d+\.effective\.(server|generator)\.threads\.\d+\.tcp$/,
	/^(floor|plan)$/,
	/^hosts$/,
	/^steps\.\d+\.(messages_total|saturated_hosts|hosts_skew)$/,
	/^steps\.\d+\.drift\.(throughput|p99)_error_ratio$/,
	/^steps\.\d+\.(drift|rates|follow_up|connect_longest|psns)$/,
	/^steps\.\d+\.server_(before|after)\.events\.psn_(mismatches|redraws)$/,
	/^(steps\.\d+|floor\.(before|after))\.connect_ns\.(psn_generate|socket_connect)$/,
	/^verdict\.\d+\.(measured_ns|limit_ns|longest_stage|longest_stage_ns|longest_stage_ratio)$/,
	/^steps\.\d+\.phase_ns_per_connection\.\w+$/,
	/^steps\.\d+\.server_(before|after)\.events\.refused\.\w+$/,
	/^steps\.\d+\.server_(before|after)\.certificates$/,
	/^steps\.\d+\.(one_way_ns|kinds|offered_per_s)$/,
	/^steps\.\d+\.(streams|kinds)\.\w+\.(response_ns|fairness|head_of_line_ratio)$/,
	/^steps\.\d+\.network$/,
	/^steps\.\d+\.network\.connecting$/,
	/^steps\.\d+\.network\.[\w.]+\.ports\.\d+\.(netdev_)?counters\.[\w.-]+$/,
	/^steps\.\d+\.server_(before|after)\.network$/,
	/^steps\.\d+\.server_(before|after)\.network\.ports\.\d+\.(netdev_)?counters\.[\w.-]+$/,
	/^steps\.\d+\.resources\.(server|generator)\.payload_bytes$/,
	/^environment\.server\.certificate_expires_at$/,
	/^(environment\.(server|clients)|servers\.\d+\.environment|hosts\.\d+\.about)\.(cgroup|rlimits\.nproc)$/,
	/^steps\.\d+\.(servers\.\d+\.)?resources\.(server\.|generator\.)?(machine_steal_ratio|cgroup_throttled_s)$/,
	/^steps\.\d+\.(servers\.\d+\.)?server_(before|after)\.resources\.(machine_cpu_s|machine_steal_s|cgroup_throttled_s)$/,
	/^resources_series\.(server|generator)\.cgroup_\w+$/,
	/^analysis\.(capacity|usl|limits|offered_load)$/,
	/^analysis\.capacity\.slo_capacity\.(lower|upper|between|scatters|capped_by)$/,
	/^analysis\.repetitions\.\d+\.(connect_p50_ms|messages_per_s|mb_per_s|p50_us|p99_us)$/,
	/^verdict\.\d+\.message_bytes$/,	// of a step that was not reached and of a capacity; see `wrong`
];
// Options of a suite's entry or an alternative: any of them, with a value of several types.
const options = /(^|\.)options\.[\w-]+(\.\d+)?$/;
// A sysctl may be a text too.
const texts = /\.sysctls\.|\.cpu_list$/;

function isObject(v) {
	return v !== null && typeof v === "object" && !Array.isArray(v);
}

// Every field and element below `o`: [the object it is in, its key, its path].
function* places(o, path = []) {
	for (const key of Object.keys(o)) {
		const at = [...path, key];
		yield [o, key, at.join(".")];
		if (o[key] !== null && typeof o[key] === "object")
			yield* places(o[key], at);
	}
}

// The damage that can be done in a place: [what, value], undefined to leave it out.
function* damages(o, key, place, mayLack) {
	// What a host says of a step is an element of steps, too.
	const path = place.replace(/^hosts\.\d+\.steps\.\d+\.own\./, "steps.0.");

	if (options.test(path))
		return;
	if (!Array.isArray(o) && !mayLack.some((regex) => regex.test(path)))
		yield ["left out", undefined];
	yield ["of another type", isObject(o[key]) ? "alien" : { alien: 1 }];
	if (isObject(o[key]))
		yield ["with a field nobody knows", { ...o[key], "an alien": 1 }];
	else if (typeof o[key] === "number" && !texts.test(path))
		yield ["as a text", String(o[key])];
}

function refusesDamage(name, run, validate, mayLack) {
	const accepted = [];
	let n = 0;

	for (const [o, key, path] of places(run)) {
		const before = o[key];
		for (const [what, value] of damages(o, key, path, mayLack)) {
			if (value === undefined)
				delete o[key];
			else
				o[key] = value;
			n++;
			if (validate(run))
				accepted.push(`${path} ${what}`);
			o[key] = before;
		}
	}
	// Else everything after a place that was not repaired would have been refused for that.
	if (!validate(run))
		accepted.push("the run is not what it was");
	check(`${name}: schema finds ${n} damages`, accepted);
}

// Values of the right type that are wrong all the same.
const wrong = [
	["a version to come", (r) => (r.schema_version = 3)],
	["a stop reason", (r) => (r.run.stop_reason = "bored")],
	["a status that its stop reason denies",
		(r) => (r.run.status = r.run.status === "aborted" ? "completed" : "aborted")],
	["a time", (r) => (r.run.started_at = "yesterday")],
	["an exit status", (r) => (r.run.exit_status = 2)],
	["a workload", (r) => (r.config.workload = "sleep")],
	["steps of a search, or none of a ramp",
		(r) => (r.config.steps = r.config.find_capacity ? [10] : [])],
	["a poll mode", (r) => (r.config.poll = "never")],
	["a fraction of a client", (r) => (r.steps[0].target_clients = 1.5)],
	["fewer than no clients", (r) => (r.steps[0].failed = -1)],
	["a stage", (r) => r.steps[0].failures.push({ stage: "lunch", code: "timeout", count: 1, meaning: "x" })],
	["a code", (r) => r.steps[0].failures.push({ stage: "traffic", code: "bad luck", count: 1, meaning: "x" })],
	["a flag", (r) => r.steps[0].validity.push("lucky")],
	["a flag twice", (r) => r.steps[0].validity.push("not_steady", "not_steady")],
	["samples and no minimum", (r) => (r.steps[0].connect_ns.total = { ...latency(r), count: 7, min: null })],
	["a minimum and no samples", (r) => (r.steps[0].connect_ns.total = { ...latency(r), count: 0, min: 7 })],
	["a null for the number of samples", (r) => (r.steps[0].response_ns.count = null)],
	["a fairness above 1", (r) => (r.steps[0].fairness = { ...fairness, jain_index: 1.1 })],
	["a residual above 1", (r) => (r.steps[0].littles_law_residual = 1.1)],
	["the kernel's memory at the generator", (r) => (r.steps[0].resources.generator.machine_kernel_bytes = 1)],
	["a result", (r) => (r.verdict[0].result = "maybe")],
	["a verdict without a size", (r) => r.verdict.push({ ...criterion, criterion: "stability" })],
];
// What was added while the version stayed 1: a right one, and what may not become of it.
const latency = (r) => r.steps[0].connect_ns.total;
const fairness = { clients: 1, jain_index: 1, slowest_msgs_per_s: 1, fastest_msgs_per_s: 1 };
const criterion = { clients: 1, repetition: 1, criterion: "step", required: "a", measured: "b", result: "pass" };
const failure = {
	reason: "resource_exhausted", resource: "nofile", side: "server", stage: "tcp_connect", code: "errno:EMFILE",
	count: 3, meaning: "raise it", text: "out of descriptors",
};
const bracket = { clients: 10, low: 10, high: 20, at_least: false, confirmed: true };
const estimate = { value: 1, low: null, high: null };
const additions = {
	config: { slo: "p99<500us", find_capacity: true, clients: 20, steps: [] },
	step: {
		started_s: 0.5, ended_s: 2.5, steady: null,
		drift: { intervals: 9, throughput_ratio: null, throughput_error_ratio: null, p99_ratio: 0, p99_error_ratio: 0 },
		histograms: { connect: "step-00005-1-connect", response: "step-00005-1-response", service: null },
		slo: [{
			expression: "p99<500us", metric: "response_p99", unit: "ns", limit: 5e5, measured: null, result: "fail",
		}],
		probe: { purpose: "double", of: "slo_capacity", slo: null, hard_failure: true },
		hard_failure: failure,
	},
	analysis: {
		capacity: {
			slo_capacity: {
				...bracket, passes: 5, tries: 5, reason: "p99<500us", scatters: true, capped_by: "max_clients",
				lower: { clients: 10, met: 5, tries: 5, unsteady: 0 }, upper: null,
				between: [{ clients: 15, met: 1, tries: 2, unsteady: 1 }],
			},
			knee: { ...bracket, reason: "p99", text: "p99 doubled" },
			first_hard_failure: { ...bracket, passes: 2, tries: 3, failure, reason: "nofile" },
		},
		usl: {
			status: "fitted", lambda: estimate, sigma: estimate, kappa: estimate, r2: 0.99, points: 5,
			passes_peak: false, peak_clients: null, peak_throughput: null,
		},
		limits: [{
			resource: "nofile", side: "server", option: "ulimit -n", used: 20, limit: 1024, clients: 10, base: 10,
			per_client: 1, projected_clients: 1014, measured: false,
		}],
	},
};
const wrongAdditions = [
	["a unit", (r) => (r.steps[0].slo[0].unit = "parsec")],
	["an error below 0", (r) => (r.steps[0].drift.p99_error_ratio = -1)],
	["a result", (r) => (r.steps[0].slo[0].result = "maybe")],
	["a purpose", (r) => (r.steps[0].probe.purpose = "fun")],
	["a reason of a failure", (r) => (r.steps[0].hard_failure.reason = "aborted")],
	["a resource", (r) => (r.steps[0].hard_failure.resource = "patience")],
	["a path for a file", (r) => (r.steps[0].histograms.connect = "../secret")],
	["a cap", (r) => (r.analysis.capacity.slo_capacity.capped_by = "patience")],
	["an end without tries", (r) => delete r.analysis.capacity.slo_capacity.lower.tries],
	["a kind of knee", (r) => (r.analysis.capacity.knee.reason = "ankle")],
	["a status of the fit", (r) => (r.analysis.usl.status = "perfect")],
	["a side", (r) => (r.analysis.limits[0].side = "left")],
];

function withAdditions(run) {
	Object.assign(run.config, structuredClone(additions.config));
	run.steps = [{ ...run.steps[0], ...structuredClone(additions.step) }];
	Object.assign(run.analysis, structuredClone(additions.analysis));
	return run;
}

function refuses(name, run, list, validate) {
	const accepted = list.filter(([, damage]) => {
		const copy = structuredClone(run);
		damage(copy);
		return validate(copy);
	});

	check(`${name}: schema finds ${list.length} wrong values`, accepted.map(([what]) => what));
}

function isValid(name, run, validate) {
	validate(run);
	check(name, (validate.errors ?? []).map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`));
}

const folders = targets().filter((folder) => existsSync(join(folder, "run.json")));
for (const folder of folders) {
	const run = readRun(folder);
	isValid(`${nameOf(folder)}: run.json is as its schema says`, run, validate);
	refusesDamage(nameOf(folder), run, validate, optional);
	if (run.steps.length > 0 && run.verdict.length > 0)
		refuses(nameOf(folder), run, wrong, validate);
}
const run = withAdditions(readRun(folders[0]));
isValid("additions: as the schema says", run, validate);
refusesDamage("additions", run, validate, optional);
refuses("additions", run, wrongAdditions, validate);

// What came of suites, and their comparisons.
const validateResults = schemas.getSchema("suite-results.schema.json");
const wrongResults = [
	["an object for an option", (s) => (s.entries[0].options.clients = {})],
	["a version to come", (s) => (s.schema_version = 3)],
	["an older version", (s) => (s.schema_version = 1)],
	["an end before the last entry", (s) => (s.status = "tired")],
	["an entry that ran and left nothing", (s) => delete s.entries[0].steps],
	["an entry that is a run and a comparison", (s) => (s.entries[0].comparison = comparisonOf(s))],
	["a path for a folder", (s) => (s.entries[0].folder = "../x")],
	["the server before the first", (s) => (s.entries[0].server = 0)],
	["a flag", (s) => s.entries[0].steps[0].validity.push("lucky")],
	["an object for an option of an alternative", (s) => (comparisonOf(s).alternatives[0].options.inline = {})],
	["a comparison with a version of its own", (s) => (comparisonOf(s).schema_version = 3)],
	["nothing to compare with", (s) => (comparisonOf(s).alternatives.length = 1)],
	["no rounds", (s) => (comparisonOf(s).rounds = 0)],
	["a metric", (s) => (comparisonOf(s).points[0].candidates[0].rows[0].metric = "beauty")],
	["a verdict", (s) => (comparisonOf(s).points[0].candidates[0].rows[0].verdict = "better")],
	["an objective that is nearly met", (s) => (comparisonOf(s).need.alternatives[0].steps[0].result = "nearly")],
	["a verdict of an expectation", (s) => (s.entries[0].expectations[0].verdict = "hoped")],
	["a percentage of nothing", (s) => (s.entries[0].expectations[0].expected.max_percent = 1)],
	["a crossing at no rate", (s) => (comparisonOf(s).crossovers[0].offered_per_s = null)],
];
const crossing = { clients: 1, message_bytes: 64, name: "x", offered_per_s: 1.5, faster_beyond: true };
const needed = (name) => ({
	name, is_socket: true, message_bytes: 64, met_up_to_clients: 5, missed_from_clients: null, not_known_clients: null,
	steps: [{ clients: 5, met_rounds: 2, missed_rounds: 1, unknown_rounds: 0, result: "met", reason: null }],
	cpu_ns_per_op: 1.5, cpu_clients: 5, ops_per_client_s: 2.5, cost_per_client_month: null,
});
const need = { slo: "p99<1ms", cpu_hour_price: null, alternatives: [needed("tcp"), needed("tls")], sentence: "TCP is." };
const optionalInResults = [
	/^entries\.\d+\.server(_reason)?$/,	// the server: of an entry that could not run
	/\.environment\.(cgroup|cpu_governor|numa_nodes|huge_pages|libraries|rdma_device\.(driver_version|numa_node))$/, // of older runs
	/not_taken$/,
	/comparison\.need$/,	// of older comparisons
	/\.expectations$/,
	/\.expected\.(min|max|at|at\.clients|at\.message_bytes|hardware|alternative)$/,
];

function comparisonOf(suite) {
	return suite.entries.find((e) => e.comparison).comparison;
}

for (const folder of targets().filter((f) => existsSync(join(f, "suite.json")))) {
	const suite = JSON.parse(readFileSync(join(folder, "suite.json"), "utf8"));

	isValid(`${nameOf(folder)}: suite.json is as its schema says`, suite, validateResults);
	comparisonOf(suite).crossovers.push(crossing);
	comparisonOf(suite).need = need;
	isValid(`${nameOf(folder)}: suite.json with a crossing and a need is as its schema says`, suite, validateResults);
	refusesDamage(`${nameOf(folder)}: suite.json`, suite, validateResults, optionalInResults);
	refuses(`${nameOf(folder)}: suite.json`, suite, wrongResults, validateResults);
}

// Suites as they are written: those that are shipped are right, and the schema finds mistakes in each.
const validateSuite = schemas.getSchema("suite.schema.json");
const wrongSuites = [
	["a version to come", (s) => (s.schema_version = 2)],
	["no name", (s) => delete s.name],
	["a path for a name", (s) => (s.entries[0].name = "../x")],
	["no entries", (s) => (s.entries = [])],
	["an entry without options", (s) => delete s.entries[0].options],
	["a member nobody knows", (s) => (s.entries[0].alien = 1)],
	["an option of the command line", (s) => (s.entries[0].options.output = "/etc")],
	["an object for a value", (s) => (s.entries[0].options.clients = {})],
	["a list of nothing", (s) => (s.entries[0].options.clients = [])],
];

for (const name of ["fabric", "messages", "arrays", "connections", "transports", "setup", "qp-sweep"]) {
	const suite = JSON.parse(readFileSync(new URL(`../../docs/suites/${name}.json`, import.meta.url), "utf8"));

	isValid(`suite ${name}: as its schema says`, suite, validateSuite);
	refuses(`suite ${name}`, suite, wrongSuites, validateSuite);
}
