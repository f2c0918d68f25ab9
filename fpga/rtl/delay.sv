// A shift register: `out` is `in` of DEPTH cycles ago, or `in` itself if DEPTH is 0. It has no
// reset.
module delay #(
    parameter int WIDTH = 1,
    parameter int DEPTH = 1
) (
    input  logic             clock,
    input  logic [WIDTH-1:0] in,
    output logic [WIDTH-1:0] out
);
  if (DEPTH == 0) begin : g_wire
    wire unused = &{1'b0, clock};
    assign out = in;
  end else begin : g_registers
    logic [WIDTH-1:0] stages[DEPTH];
    always_ff @(posedge clock) begin
      stages[0] <= in;
      for (int i = 1; i < DEPTH; i++) stages[i] <= stages[i-1];
    end
    assign out = stages[DEPTH-1];
  end
endmodule
