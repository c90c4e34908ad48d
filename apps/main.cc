// The strata program: one subcommand per file.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "commands.h"
#include "descriptors.h"
#include "heap.h"
#include "hints.h"
#include "say.h"
#include "version.h"

int main(int argc, char** argv) {
  strata::apps::occupy_standard_descriptors();
  strata::apps::keep_heap_small();
  CLI::App app{"Strata: runs large language models on the machine you have"};
  app.set_version_flag("--version", fmt::format("strata {} ({})", strata::apps::program_version(),
                                                strata::apps::program_commit()));
  app.require_subcommand(1);
  int exit_code = 0;
  strata::apps::add_commands(app, exit_code);
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (const std::string unknown = strata::apps::unknown_command(app, words); !unknown.empty()) {
    strata::apps::say("error: {}\n", unknown);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool helps = error.get_exit_code() == 0;  // --help and --version come this way too
    const std::string hint = strata::apps::hint_for(app, words, helps);
    if (hint.empty())
      app.exit(error);
    else
      strata::apps::say("error: {}\n", hint);
    exit_code = hint.empty() && helps ? 0 : 2;
  }
  // What is still buffered may not fit, e.g. on a full disk.
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
    strata::apps::say("error: cannot write to standard output\n");
    return std::max(exit_code, 1);
  }
  return exit_code;
}
