# cells: pg15 pg18
# The output plugin over a replication connection, by pg_recvlogical: nothing is lost when the client dies in the middle of a
# transaction, quiet tables hold no log back, and rows of any size go through.
# takes: 40 s

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until reap slurp spawn);
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "wal_receiver_status_interval = 1s\n")->allow_output_plugin;
my $folder = new_folder('recvlogical');
chmod(0755, $folder);
$postgres->psql('create table t (id int primary key, v text, b bytea); alter table t alter b set storage external; create table other (id int)');
my @client = ($postgres->bindir . '/pg_recvlogical', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres', '--slot=out', '--no-loop');

sub run_client { my ($log, @arguments) = @_; my $pid = spawn("$folder/$log", 0, @client, @arguments); waitpid($pid, 0); return $? >> 8; }
my $runs = 0;
sub start_client { my (%options) = @_; my $n = ++$runs; my $pid = spawn("$folder/log$n", 0, @client, '--start', '-s', '1', '-F', '0', '-f', "$folder/out$n", map { ('-o', "$_=$options{$_}") } sort keys %options); return ($pid, "$folder/out$n", "$folder/log$n"); }
sub lines_of { my ($file) = @_; return -e $file ? split(/\n/, slurp($file)) : (); }
sub stop_client { my ($pid, $signal) = @_; kill($signal // 'INT', $pid); reap($pid, 30) or die 'pg_recvlogical does not end'; return; }

is(run_client('create', '--create-slot', '--plugin=cdc_bridge'), 0, 'a slot is made by pg_recvlogical');

# ---- what is wrong is told to the client
my ($bad, undef, $log) = start_client(format => 'avro');
reap($bad, 30);
like(slurp($log), qr/invalid value for option "format" of cdc_bridge output plugin: "avro"\s+HINT:  Valid values are: canal-json, changelog-json, debezium-avro, debezium-json, debezium-unwrapped-json, json, maxwell-json\./, 'a wrong option is told at START_REPLICATION');

# ---- a stream
my %with = (format => 'json', tables => 'public.t', include_transaction => 'on');
my ($pid, $file) = start_client(%with);
$postgres->psql(q{insert into t values (1, 'x'); update t set v = 'y'});
ok(poll_until(sub { (grep { /"commit"/ } lines_of($file)) == 2 }), 'changes arrive while the client waits') or diag(slurp($file));

# ---- P7: only other tables are written
my $lsn = $postgres->psql('insert into other select generate_series(1, 1000); select pg_current_wal_lsn()');
ok($postgres->poll(qq{select confirmed_flush_lsn >= '$lsn' from pg_replication_slots where slot_name = 'out'}), 'P7: quiet tables hold no log back');
is(scalar(lines_of($file)), 6, '... and bring no records');
stop_client($pid);

# ---- P12: several rows with one LSN, and a client that dies among them
my $rows = 60_000;
open(my $copy, '>', "$folder/copy") or die;
print $copy "$_\tsome text that makes the row a little longer\n" for 1001 .. 1000 + $rows;
close($copy);
$postgres->psql("copy t (id, v) from '$folder/copy'");
my $died_inside = 0;
for (1 .. 10)
{
	($pid, $file) = start_client(%with);
	poll_until(sub { -s $file && -s $file > 100_000 }, 30) or die 'nothing arrives';
	stop_client($pid, 'KILL');
	my $text = slurp($file);
	last if $died_inside = $text !~ /"op":"commit"/;
}
ok($died_inside, 'P12: a client died in the middle of a transaction');
($pid, $file) = start_client(%with);
ok(poll_until(sub { my @l = lines_of($file); @l && $l[-1] =~ /"op":"commit"/ }, 60), 'P12: ... the next one gets the transaction');
stop_client($pid);
my @changes = grep { $_->{op} eq 'insert' } map { JSON::PP::decode_json($_) } lines_of($file);
is(scalar(@changes), $rows, 'P12: ... all of it');
is_deeply([ map { $_->{seq} } @changes ], [ 1 .. $rows ], 'P12: each row has a place of its own');
is(scalar(keys %{ { map { $_->{commit_lsn} => 1 } @changes } }), 1, '... in one transaction');
my %rows_of_lsn;
$rows_of_lsn{ $_->{lsn} }++ for @changes;
cmp_ok(scalar(keys %rows_of_lsn), '<', $rows, '... also where several have one LSN');
unlink("$folder/copy");

# ---- P16: a large row
my $megabytes = $ENV{CDC_LOAD_MB} && $ENV{CDC_LOAD_MB} >= 400 ? 400 : 60;
$postgres->psql("insert into t select 2, null, decode(repeat('00ff', $megabytes * 512 * 1024), 'hex')");
$postgres->psql('update t set v = $$z$$ where id = 2');
($pid, $file) = start_client(%with);
ok(poll_until(sub { -s $file && slurp($file) =~ /"op":"update".*"unchanged":\["b"\].*\n.*"op":"commit"/ }, 120), "P16: a row of $megabytes MB, and an update that does not touch it");
stop_client($pid);
my ($large) = sort { length($b) <=> length($a) } lines_of($file);
cmp_ok(length($large), '>', $megabytes * 1024 * 1024 * 4 / 3, '... in base64');

# ---- what does not fit into one record is refused, by its table
SKIP:
{
	skip('CDC_LOAD_MB=600 or more: a row that is too large for one record', 1) unless $ENV{CDC_LOAD_MB} && $ENV{CDC_LOAD_MB} >= 600;
	$postgres->psql("insert into t select 3, null, decode(repeat('00ff', 250 * 1024 * 1024), 'hex')");
	($pid, undef, $log) = start_client(%with, binary => 'hex');
	reap($pid, 120);
	like(slurp($log), qr/could not write a change as text\s+DETAIL:  a record of table "public\.t" would be longer/, 'P37: a row that is too large for one record is told');
}

done_testing();
