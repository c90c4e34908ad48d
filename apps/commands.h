// Each subcommand registers itself on the program and, when it ran, leaves its exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace strata::apps {

// `exit_code` must outlive the parse. 0: done; 1: the work failed, with the reason on stderr;
// 2: the command line is wrong.
void add_commands(CLI::App& app, int& exit_code);

void add_show(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);
void add_detokenize(CLI::App& app, int& exit_code);
void add_template(CLI::App& app, int& exit_code);
void add_logits(CLI::App& app, int& exit_code);
void add_perplexity(CLI::App& app, int& exit_code);
void add_embed(CLI::App& app, int& exit_code);
void add_profile(CLI::App& app, int& exit_code);
void add_pull(CLI::App& app, int& exit_code);
void add_ls(CLI::App& app, int& exit_code);
void add_rm(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_ps(CLI::App& app, int& exit_code);
void add_stop(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);

}  // namespace strata::apps
