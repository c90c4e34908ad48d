// The strata program: one subcommand per file.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "commands.h"
#include "say.h"
#include "version.h"

int main(int argc, char** argv) {
  CLI::App app{"Strata: runs large language models on the machine you have"};
  app.set_version_flag("--version", fmt::format("strata {} ({})", strata::apps::program_version(),
                                                strata::apps::program_commit()));
  app.require_subcommand(1);
  int exit_code = 0;
  strata::apps::add_commands(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;  // --help and --version come this way too
  }
  // What is still buffered may not fit, e.g. on a full disk.
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
    strata::apps::say("error: cannot write to standard output\n");
    return std::max(exit_code, 1);
  }
  return exit_code;
}
