# Unit tests of the load generator: what each links, as in tests.mk, which reads these variables.

LOADGEN_FAKES := $(patsubst %,tests/unit/fakes/fake_%,core queues rdmacm verbs)
LOADGEN_FAIL := $(patsubst %,common/%,addr fail fail_table frame)
# worker.o is left out where the test plays the workers.
LOADGEN_STEP := $(LOADGEN_FAIL) common/hist common/json_at common/latency_json loadgen/step loadgen/step_json loadgen/stripe

# What reads run.json: figures of steps, and lines through them.
LOADGEN_READ := tests/unit/helpers/analysis_run common/json_at common/hist loadgen/analysis/read loadgen/analysis/stats

LOADGEN_ALL := $(COMMON:%=common/%) $(CLIENT:%=client/%) $(LOADGEN_FAKES) \
	$(filter-out loadgen/main,$(LOADGEN:%=loadgen/%)) $(ANALYSIS:%=loadgen/analysis/%) \
	$(REPORT:%=loadgen/report/%)

UNIT_test_analysis_baseline := $(LOADGEN_READ) loadgen/analysis/baseline loadgen/analysis/differences
UNIT_test_analysis_damaged := $(LOADGEN_READ) $(patsubst %,loadgen/analysis/%,baseline differences limits plan)
UNIT_test_analysis_curve := common/hist common/json_at $(patsubst %,loadgen/analysis/%,curve knee stats usl)
UNIT_test_analysis_knee := loadgen/analysis/knee
UNIT_test_analysis_limits := $(LOADGEN_READ) loadgen/analysis/limits
UNIT_test_analysis_plan := $(LOADGEN_READ) loadgen/analysis/plan
UNIT_test_analysis_stats := common/hist loadgen/analysis/stats
UNIT_test_analysis_usl := common/hist loadgen/analysis/stats loadgen/analysis/usl
UNIT_test_loadgen_breaking := $(LOADGEN_STEP) loadgen/breaking loadgen/stop
UNIT_test_loadgen_capacity := loadgen/capacity
UNIT_test_loadgen_compare := $(LOADGEN_ALL)
UNIT_test_loadgen_config := $(LOADGEN_ALL)
UNIT_test_loadgen_environment := loadgen/environment
UNIT_test_loadgen_memory := $(LOADGEN_STEP) loadgen/memory
UNIT_test_loadgen_pace := $(LOADGEN_FAIL) loadgen/pace
UNIT_test_loadgen_payload := loadgen/payload
UNIT_test_loadgen_schedule := loadgen/schedule
UNIT_test_loadgen_lanes := loadgen/lanes loadgen/stripe
UNIT_test_loadgen_stripe := loadgen/stripe
UNIT_test_loadgen_results := common/hist common/hist_io common/log common/paths loadgen/results
UNIT_test_loadgen_server_proc := common/addr loadgen/server_proc
UNIT_test_loadgen_slo := $(LOADGEN_STEP) loadgen/slo
UNIT_test_loadgen_step := $(LOADGEN_STEP)
UNIT_test_loadgen_step_share := $(LOADGEN_STEP)
UNIT_test_loadgen_stop := $(LOADGEN_STEP) loadgen/stop
UNIT_test_loadgen_trace := loadgen/trace
UNIT_test_loadgen_verdict := $(LOADGEN_STEP) loadgen/verdict loadgen/slo

REPORT_DOC := $(patsubst %,loadgen/report/%,doc doc_csv doc_files doc_html doc_markdown doc_read doc_text chart chart_layout chart_run \
	chart_scale chart_script chart_svg style utf8) \
	common/paths tests/unit/helpers/doc_rig
REPORT_CHART := $(patsubst %,loadgen/report/%,chart chart_layout chart_run chart_scale chart_script chart_svg utf8)

UNIT_test_report_chart := $(REPORT_CHART)
UNIT_test_report_doc := $(REPORT_DOC)
UNIT_test_report_doc_files := $(REPORT_DOC)
UNIT_test_report_doc_forms := $(REPORT_DOC)
UNIT_test_report_utf8 := loadgen/report/utf8

# Whole reports, of runs made by hand.
REPORT_ALL := $(patsubst %,common/%,addr build_info fail frame hist hist_io hist_read json_at log opts opts_value \
	paths) $(ANALYSIS:%=loadgen/analysis/%) $(REPORT:%=loadgen/report/%) tests/unit/helpers/report_rig \
	tests/unit/helpers/analysis_run

UNIT_test_report_command := $(REPORT_ALL)
UNIT_test_report_points := $(REPORT_ALL)
UNIT_test_report_sections := $(REPORT_ALL)
UNIT_test_report_source := $(REPORT_ALL)
