// The sum of two f32 numbers, as IEEE 754 defines it for rounding to nearest, ties to even, with
// subnormal numbers. Every NaN that results is 7fc00000, as in f32_multiply.
//
// Accepts operands in every cycle and returns their sum LATENCY cycles later. The registers are
// spread over three places: after alignment, after the sum, and after rounding.
module f32_add #(
    parameter int LATENCY = 3
) (
    input  logic        clock,
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] sum
);
  localparam logic [31:0] NAN = 32'h7fc00000;

  // Alignment, with three bits below the last place (guard, round and sticky): the smaller
  // magnitude moves to the exponent of the larger one.
  logic [31:0] larger, smaller;
  logic [7:0] larger_exponent, smaller_exponent, distance;
  logic [26:0] larger_significand, smaller_significand, aligned;
  logic special, subtract;
  logic [31:0] special_value;
  always_comb begin
    if (a[30:0] >= b[30:0]) {larger, smaller} = {a, b};
    else {larger, smaller} = {b, a};
    larger_exponent = |larger[30:23] ? larger[30:23] : 8'd1;
    smaller_exponent = |smaller[30:23] ? smaller[30:23] : 8'd1;
    distance = larger_exponent - smaller_exponent;
    larger_significand = {|larger[30:23], larger[22:0], 3'd0};
    smaller_significand = {|smaller[30:23], smaller[22:0], 3'd0};
    aligned = smaller_significand >> distance;
    aligned[0] |= (aligned << distance) != smaller_significand;
    subtract = larger[31] ^ smaller[31];
    // The larger magnitude is infinity or NaN if one of them is.
    special = &larger[30:23];
    special_value = |larger[22:0] || (subtract && &smaller[30:23]) ? NAN : larger;
  end

  logic special_1, sign_1, subtract_1;
  logic [31:0] special_value_1;
  logic [7:0] exponent_1;
  logic [26:0] larger_1, smaller_1;
  delay #(
      .WIDTH(97),
      .DEPTH((LATENCY + 2) / 3)
  ) alignment (
      .clock,
      .in ({
        special, special_value, larger[31], subtract, larger_exponent, larger_significand, aligned
      }),
      .out({special_1, special_value_1, sign_1, subtract_1, exponent_1, larger_1, smaller_1})
  );

  logic sign;
  logic [27:0] significand;
  always_comb begin
    if (subtract_1) significand = {1'b0, larger_1} - {1'b0, smaller_1};
    else significand = {1'b0, larger_1} + {1'b0, smaller_1};
    // x - x is +0, but -0 - 0 is -0.
    sign = sign_1 & (~subtract_1 | |significand);
  end

  logic special_2, sign_2;
  logic [31:0] special_value_2;
  logic [7:0] exponent_2;
  logic [27:0] significand_2;
  delay #(
      .WIDTH(70),
      .DEPTH((LATENCY + 1) / 3)
  ) addition (
      .clock,
      .in ({special_1, special_value_1, sign, exponent_1, significand}),
      .out({special_2, special_value_2, sign_2, exponent_2, significand_2})
  );

  logic [31:0] finite;
  f32_round #(
      .WIDTH(28)
  ) round (
      .sign(sign_2),
      .exponent($signed({2'b0, exponent_2})),
      .significand(significand_2),
      .result(finite)
  );
  delay #(
      .WIDTH(32),
      .DEPTH(LATENCY / 3)
  ) rounding (
      .clock,
      .in (special_2 ? special_value_2 : finite),
      .out(sum)
  );
endmodule
