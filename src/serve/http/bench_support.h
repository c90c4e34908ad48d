// What streams cost is measured beside a thread that works like an engine emitting 50,000 tokens/s,
// whose tokens go nowhere or, over loopback, to clients of this process.
#pragma once

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/processor_time.h"

namespace strata::http {

constexpr double kTokensPerSecond = 50'000;
constexpr double kSegmentSeconds = 0.25;

struct Stopwatch {
  double wall = seconds_of(CLOCK_MONOTONIC);
  double thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  double process = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
};

struct Spent {
  double wall = 0;
  double thread = 0;   // processor time of the measuring thread
  double process = 0;  // of all threads

  void add(const Stopwatch& start, const Stopwatch& end) {
    wall += end.wall - start.wall;
    thread += end.thread - start.thread;
    process += end.process - start.process;
  }
};

// The computing of a step: so many rounds that take so long, whoever else runs.
inline void compute(std::uint64_t rounds) {
  std::uint64_t state = 1;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    benchmark::DoNotOptimize(state);
  }
}

inline double rounds_per_second() {
  constexpr std::uint64_t kRounds = 50'000'000;
  const double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  compute(kRounds);
  return kRounds / (seconds_of(CLOCK_THREAD_CPUTIME_ID) - start);
}

// Reads many streams in one thread and counts their bytes. Clients would be elsewhere, so it costs
// little: it looks every few milliseconds, throws away what came, and nobody wakes it.
class Readers {
 public:
  Readers(std::uint16_t port, int streams) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (int i = 0; i < streams; ++i) {
      const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockets_.push_back(client);
      failed_ |= connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
                 ::send(client, kRequest.data(), kRequest.size(), 0) !=
                     static_cast<ssize_t>(kRequest.size());
    }
    thread_ = std::thread([this] { read(); });
  }
  ~Readers() {
    stopped_ = true;
    thread_.join();
    for (const int client : sockets_) close(client);
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

  bool failed() const { return failed_; }
  std::uint64_t bytes() const { return bytes_; }
  double cpu_seconds() const { return cpu_seconds_; }

 private:
  void read() {
    constexpr std::size_t kMost = 1 << 20;
    while (!stopped_) {
      for (const int client : sockets_) {
        const ssize_t bytes = recv(client, nullptr, kMost, MSG_DONTWAIT | MSG_TRUNC);
        if (bytes > 0) bytes_ += static_cast<std::uint64_t>(bytes);
      }
      cpu_seconds_ = seconds_of(CLOCK_THREAD_CPUTIME_ID);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::vector<int> sockets_;
  bool failed_ = false;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<double> cpu_seconds_{0};
  std::thread thread_;
};

// Waits until `reached` or for 10 s.
template <typename Condition>
bool wait_for(Condition reached) {
  const double end = seconds_of(CLOCK_MONOTONIC) + 10;
  while (!reached()) {
    if (seconds_of(CLOCK_MONOTONIC) > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline void report(benchmark::State& state, const Spent& idle, const Spent& sending, double reading,
                   double events) {
  state.counters["tokens/s"] = events / sending.wall;
  state.counters["loss_%"] = 100 * (1 - idle.wall / sending.wall);
  // Without the time that other processes took from this thread.
  state.counters["loss_cpu_%"] = 100 * (1 - idle.thread / sending.thread);
  state.counters["engine_us/event"] = 1e6 * (sending.thread - idle.thread) / events;
  state.counters["server_us/event"] = 1e6 * (sending.process - sending.thread - reading) / events;
  state.counters["clients_us/event"] = 1e6 * reading / events;
}

struct Load {
  std::size_t streams = 0;
  std::size_t chunk = 0;  // bytes of a token's chunk
};

// Steps of an engine whose every token, of each stream, `send` sends, and those of one that keeps
// them.
template <typename Send>
void measure(benchmark::State& state, const Readers& readers, const Load& load, Send send) {
  const std::uint64_t framed = load.chunk + fmt::format("{:x}", load.chunk).size() + 4;
  const auto streams = static_cast<double>(load.streams);
  const auto rounds = static_cast<std::uint64_t>(rounds_per_second() * streams / kTokensPerSecond);
  const int steps = static_cast<int>(kSegmentSeconds * kTokensPerSecond / streams);
  Spent idle;
  Spent sending;
  double reading = 0;
  for (auto _ : state) {
    Stopwatch start;
    for (int step = 0; step < steps; ++step) compute(rounds);
    Stopwatch end;
    idle.add(start, end);
    const std::uint64_t expected =
        readers.bytes() + static_cast<std::uint64_t>(steps) * load.streams * framed;
    const double reading_start = readers.cpu_seconds();
    start = Stopwatch();
    for (int step = 0; step < steps; ++step) {
      compute(rounds);
      send();
    }
    end = Stopwatch();
    sending.add(start, end);
    reading += readers.cpu_seconds() - reading_start;
    if (!wait_for([&] { return readers.bytes() >= expected; }) || readers.bytes() != expected)
      return state.SkipWithError("the clients did not get what was sent");
    state.counters["lag_ms"] =
        std::max<double>(state.counters["lag_ms"], 1e3 * (seconds_of(CLOCK_MONOTONIC) - end.wall));
  }
  report(state, idle, sending, reading, static_cast<double>(state.iterations()) * steps * streams);
}

}  // namespace strata::http
