// The product of two f32 numbers, as IEEE 754 defines it for rounding to nearest, ties to even,
// with subnormal numbers. Every NaN that results is 7fc00000: the standard leaves sign and payload
// of NaNs open, and the C layer compares NaNs as equal.
//
// Accepts operands in every cycle and returns their product LATENCY cycles later. The registers are
// spread over two places: after the multiplier, which is the only one, and after rounding. One FPGA
// block with a hardened f32 multiplier and adder replaces this module and f32_add.
module f32_multiply #(
    parameter int LATENCY = 2
) (
    input  logic        clock,
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] product
);
  localparam logic [31:0] NAN = 32'h7fc00000;

  logic a_nan, b_nan, a_inf, b_inf, a_zero, b_zero;
  logic [23:0] a_significand, b_significand;
  logic [7:0] a_exponent, b_exponent;
  always_comb begin
    a_nan = &a[30:23] & |a[22:0];
    b_nan = &b[30:23] & |b[22:0];
    a_inf = &a[30:23] & ~|a[22:0];
    b_inf = &b[30:23] & ~|b[22:0];
    a_zero = ~|a[30:0];
    b_zero = ~|b[30:0];
    // Subnormal numbers have no implicit bit, and the exponent of the least normal numbers.
    a_significand = {|a[30:23], a[22:0]};
    b_significand = {|b[30:23], b[22:0]};
    a_exponent = |a[30:23] ? a[30:23] : 8'd1;
    b_exponent = |b[30:23] ? b[30:23] : 8'd1;
  end

  logic sign, is_nan, is_inf;
  logic signed [9:0] exponent;
  logic [47:0] significand;
  logic sign_1, is_nan_1, is_inf_1;
  logic signed [9:0] exponent_1;
  logic [47:0] significand_1;
  always_comb begin
    sign = a[31] ^ b[31];
    is_nan = a_nan | b_nan | (a_inf & b_zero) | (a_zero & b_inf);
    is_inf = a_inf | b_inf;
    exponent = $signed({2'b0, a_exponent}) + $signed({2'b0, b_exponent}) - 10'sd127;
    significand = 48'(a_significand) * 48'(b_significand);
  end
  delay #(
      .WIDTH(61),
      .DEPTH((LATENCY + 1) / 2)
  ) multiplied (
      .clock,
      .in ({sign, is_nan, is_inf, exponent, significand}),
      .out({sign_1, is_nan_1, is_inf_1, exponent_1, significand_1})
  );

  logic [31:0] finite, selected;
  f32_round #(
      .WIDTH(48)
  ) round (
      .sign(sign_1),
      .exponent(exponent_1),
      .significand(significand_1),
      .result(finite)
  );
  always_comb begin
    if (is_nan_1) selected = NAN;
    else if (is_inf_1) selected = {sign_1, 8'hff, 23'd0};
    else selected = finite;
  end
  delay #(
      .WIDTH(32),
      .DEPTH(LATENCY / 2)
  ) rounded (
      .clock,
      .in (selected),
      .out(product)
  );
endmodule
