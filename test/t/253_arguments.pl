# B37: no argument of a SQL function brings a server process down: every function of the extension is called with NULL, and with values that
# nobody meant, in each of its arguments, while a pipeline runs. Nothing crashes, and what is told is no internal error.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key)', 'insert into shop.t values (1)');
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
# one that everything may be done to
$postgres->psql(q{select cdc_create_pipeline('victim', source => 'shop', tables => '{shop.x}', target_schema => 'victim')});
my $postmaster = $postgres->{pid};

# What an argument of that type gets when another one is tried, and what is tried.
my %values = (
	text => [ q{'shop'}, q{''}, q{repeat('x', 100000)}, q{E'\\u0001'}, q{E'a.b.c"''`'}, q{'999999999999999999999999'} ],
	'text[]' => [ q{'{shop.*}'}, q{'{}'}, q{'{NULL}'}, q{'{{a.b,c.d},{e.f,g.h}}'}, q{'[5:6]={a.b,c.d}'}, q{array_fill('x.y'::text, array[10000])} ],
	jsonb => [ q{'{}'}, q{'null'}, q{'[]'}, q{'1'}, q{'{"a": null}'}, q{'{"batch_max_rows": {"a": []}}'}, q{'{"column_types": {"": [[]]}}'} ],
	boolean => [ 'true', 'false' ],
	name => [ q{'postgres'}, q{''}, q{'nobody'} ],
	regrole => [ q{'postgres'}, '0', '4000000000' ],
	oid => [ '0', '4000000000', '1259' ],
	'bigint[]' => [ q{'{1}'}, q{'{}'}, q{'{NULL}'}, q{'{{1,2},{3,4}}'}, q{'{-1,9223372036854775807}'}, q{array_fill(1::bigint, array[10000])} ],
	bigint => [ '1', '0', '-1', '9223372036854775807', '-9223372036854775808' ],
	integer => [ '1', '0', '-1', '2147483647', '-2147483648' ],
	interval => [ q{'10 ms'}, q{'-1 day'}, q{'100000000 years'} ],
);
my %usual = (pipeline => q{'victim'}, source => q{'shop'}, server => q{'shop'});

my (@calls, %unknown);
for (split(/\n/, $postgres->psql(q{
	select p.oid, p.oid::regproc, p.prokind,
		(select string_agg(coalesce(p.proargnames[n], '') || '=' || format_type(t, null), ',' order by n) from unnest(p.proargtypes) with ordinality a (t, n))
	from pg_proc p join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
		join pg_extension e on e.oid = d.refobjid and e.extname = 'cdc_bridge'
	where p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype, 'fdw_handler'::regtype) order by 2})))
{
	my ($oid, $name, $kind, $arguments) = split(/\|/);
	my @arguments = map { [ split(/=/) ] } split(/,/, $arguments // '');
	$unknown{ $_->[1] } = 1 for grep { !$values{ $_->[1] } } @arguments;
	next if grep { !$values{ $_->[1] } } @arguments;
	my @usual = map { $usual{ $_->[0] } // $values{ $_->[1] }[0] } @arguments;
	my $call = sub { my @list = @_; return ($kind eq 'p' ? "call $name(" : "select count(*) from $name(") . join(', ', map { "$list[$_]::$arguments[$_][1]" } 0 .. $#list) . ');'; };
	push @calls, $call->(map { 'null' } @arguments);
	for my $n (0 .. $#arguments)
	{
		for my $value ('null', @{ $values{ $arguments[$n][1] } })
		{
			my @list = @usual;
			$list[$n] = $value;
			push @calls, $call->(@list);
		}
	}
}
is_deeply([ sort keys %unknown ], [], 'every type of an argument has values to be tried');
cmp_ok(scalar(@calls), '>', 200, 'there are functions to be called');

# each call in a transaction that is undone, and one after the other in one session
my ($status, $out, $err) = $postgres->try_psql(join("\n", '\set ON_ERROR_STOP 0', q{set client_min_messages = error}, ';', map { ($_ =~ /^call/ ? $_ : "begin; $_ rollback;", "\\echo done") } @calls));
is(scalar(() = $out =~ /^done$/mg), scalar(@calls), 'B37: every call comes back') or diag(substr($err, -2000));
unlike($err, qr/server closed the connection|terminated|connection to server/, 'B37: no backend ended');
my @internal = $err =~ /^.*XX000.*$/mg;
is(scalar(@internal), 0, 'B37: no internal error') or diag(map { "$_\n" } @internal[ 0 .. ($#internal < 5 ? $#internal : 5) ]);
unlike($postgres->log_text, qr/terminated by signal|PANIC|TRAP:|reinitializing/, 'B37: nothing crashed');
ok(kill(0, $postmaster), 'B37: the postmaster is the same');
$source->sql('insert into shop.t values (2)');
$pipeline->wait_for_catchup->is_same('B37: the pipeline beside goes on');

done_testing();
