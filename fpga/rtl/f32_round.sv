// The last step of an f32 operation, combinational: normalizes a magnitude, rounds it to nearest,
// ties to even, and packs it.
//
// The magnitude is significand * 2^(exponent - 126 - WIDTH), so that a significand with its top bit
// set has the biased exponent `exponent` + 1. The significand may have leading zeros; its lowest
// bit may be sticky, if the bits above it are exact for every left shift that can occur. A
// magnitude below the normal range becomes a subnormal number or zero, one above it infinity.
module f32_round #(
    parameter int WIDTH = 28
) (
    input  logic                    sign,
    input  logic signed [      9:0] exponent,
    input  logic        [WIDTH-1:0] significand,
    output logic        [     31:0] result
);
  localparam int COUNT = 10;  // bits of shift counts, as the exponent has

  logic signed [COUNT-1:0] zeros;  // leading zeros; WIDTH for 0
  logic signed [COUNT-1:0] shift;  // to the left, or to the right if negative
  logic        [WIDTH-1:0] shifted;
  logic                    lost;  // a right shift drops a set bit
  logic        [      9:0] biased;
  logic                    up;
  logic        [     32:0] rounded;

  always_comb begin
    zeros = COUNT'(WIDTH);
    for (int i = 0; i < WIDTH; i++) if (significand[i]) zeros = COUNT'(WIDTH - 1 - i);

    // Only up to the exponent of subnormal numbers.
    if (zeros <= exponent) shift = zeros;
    else if (exponent >= -COUNT'(WIDTH)) shift = exponent;
    else shift = -COUNT'(WIDTH);
    if (shift >= 0) begin
      shifted = significand << shift;
      lost = 1'b0;
    end else begin
      shifted = significand >> -shift;
      lost = (shifted << -shift) != significand;
    end
    biased = shifted[WIDTH-1] ? exponent + 10'sd1 - shift : 10'd0;

    up = shifted[WIDTH-25] & (lost | |shifted[WIDTH-26:0] | shifted[WIDTH-24]);
    // A carry out of the fraction increments the exponent.
    rounded = {biased, shifted[WIDTH-2-:23]} + 33'(up);
    if (rounded[32:23] >= 10'd255) result = {sign, 8'hff, 23'd0};
    else result = {sign, rounded[30:0]};
  end
endmodule
