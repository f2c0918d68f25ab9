// Grants the memory, which accepts one request per cycle when `ready` is set, to the first of
// SOURCES requesters that asks for it: source 0 comes first.
module memory_port #(
    parameter int SOURCES = 5
) (
    input  logic [           SOURCES-1:0] requests,
    input  logic [        SOURCES*32-1:0] addresses,
    output logic [           SOURCES-1:0] grants,
    input  logic                          ready,
    output logic                          valid,
    output logic [$clog2(SOURCES)-1:0]    source,
    output logic [                  31:0] address
);
  assign valid  = |requests;
  assign grants = ready ? requests & (~requests + 1'b1) : '0;  // the lowest set bit
  always_comb begin
    source  = '0;
    address = '0;
    for (int i = SOURCES - 1; i >= 0; i--) begin
      if (requests[i]) begin
        source  = $bits(source)'(i);
        address = addresses[32*i+:32];
      end
    end
  end
endmodule
