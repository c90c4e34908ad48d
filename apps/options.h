// Options that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "engine/engine.h"

namespace strata::apps {

CLI::Option* add_isa_option(CLI::App& command, Isa& isa);

// --threads, from `least`, with a warning where they would wait for each other, and a refusal where
// they would hardly do anything else.
CLI::Option* add_threads_option(CLI::App& command, int& threads, int least,
                                const std::string& description);

// --threads, --isa, --context, --memory, --reference, --cache, --step-rows.
void add_engine_options(CLI::App& command, EngineOptions& options);

// A check of CLI11: the sentence that refuses an empty value, and nothing else.
std::string refuse_empty(const std::string& text);

// "512M", "4G", "1.5GiB" or plain bytes.
Result<Bytes> parse_size(std::string_view text);

// Makes `work` what the command does: its error goes to stderr and 1 into `exit_code`.
void set_action(CLI::App& command, int& exit_code, std::function<Result<int>()> work);

}  // namespace strata::apps
