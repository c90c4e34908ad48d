// strata bench serve.
#pragma once

#include <CLI/CLI.hpp>

namespace strata::apps {

// Below `bench`.
const CLI::App* add_bench_serve(CLI::App& bench, int& exit_code);

}  // namespace strata::apps
