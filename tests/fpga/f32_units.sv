// The adder and the multiplier with the same operands, for f32_units.cpp.
module f32_units #(
    parameter int LATENCY = 3
) (
    input  logic        clock,
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] sum,
    output logic [31:0] product
);
  f32_add #(
      .LATENCY(LATENCY)
  ) add (
      .clock,
      .a,
      .b,
      .sum
  );
  f32_multiply #(
      .LATENCY(LATENCY)
  ) multiply (
      .clock,
      .a,
      .b,
      .product
  );
endmodule
