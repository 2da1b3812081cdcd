#include "simulator/workload/random.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace shardwise::sim {
namespace {

// The area under exp(-x^2 / 2), x > 0, is covered by layers of equal area: the lowest with the tail
// from kTail on, above it rectangles that reach a little beyond the curve. A point of a layer is
// below the curve, mostly without a look at it, or is drawn again.
// Source: Marsaglia and Tsang, "The ziggurat method for generating random variables", Journal of
// Statistical Software 5(8), 2000. Their layer, sign and place share bits; these do not, as Doornik
// asks for ("An improved ziggurat method to generate normal random samples", 2005).

constexpr std::size_t kLayers = 128;
constexpr double kTail = 3.442619855899;
constexpr double kArea = 9.91256303526217e-3;

double density(double x) { return std::exp(-x * x / 2); }

struct Ziggurat {
  std::array<double, kLayers + 1> width{};  // of each layer; of the lowest, as if it were one
  std::array<double, kLayers + 1> curve{};  // the curve at the width
  Ziggurat() {
    width[0] = kArea / density(kTail);
    width[1] = kTail;
    for (std::size_t i = 2; i < kLayers; ++i) {
      width[i] = std::sqrt(-2 * std::log(kArea / width[i - 1] + density(width[i - 1])));
    }
    for (std::size_t i = 0; i <= kLayers; ++i) curve[i] = density(width[i]);
  }
};

const Ziggurat& ziggurat() {
  static const Ziggurat kMade;
  return kMade;
}

/// Draws that follow a first one of 64 bits.
class More {
 public:
  explicit More(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits() { return mixed(bits_, drawn_++); }
  /// In (0, 1].
  double positive() { return 1 - uniform(bits_, drawn_++); }

 private:
  std::uint64_t bits_;
  std::uint64_t drawn_ = 0;
};

/// Beyond kTail. Source: Marsaglia, "Generating a variable from the tail of the normal
/// distribution", Technometrics 6 (1964).
double tail(More& more) {
  double beyond = 0;
  do {
    beyond = -std::log(more.positive()) / kTail;
  } while (-2 * std::log(more.positive()) < beyond * beyond);
  return kTail + beyond;
}

}  // namespace

double normal(std::uint64_t seed, std::uint64_t number) {
  const Ziggurat& layers = ziggurat();
  std::uint64_t bits = mixed(seed, number);
  More more(bits);
  while (true) {
    const std::size_t layer = bits % kLayers;
    // In [-1, 1), of bits that did not choose the layer.
    const double place = static_cast<double>(static_cast<std::int64_t>(bits) >> 10U) * 0x1p-53;
    const double x = place * layers.width[layer];
    if (std::abs(x) < layers.width[layer + 1]) return x;
    if (layer == 0) return std::copysign(tail(more), place);
    const double top = layers.curve[layer + 1];
    const double bottom = layers.curve[layer];
    if (bottom + more.positive() * (top - bottom) < density(x)) return x;
    bits = more.bits();
  }
}

double jitter_factor(std::uint64_t seed, std::uint64_t number, double deviation) {
  return std::exp(deviation * normal(seed, number) - deviation * deviation / 2);
}

}  // namespace shardwise::sim
